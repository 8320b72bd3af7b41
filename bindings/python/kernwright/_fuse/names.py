"""Names of arguments as names of device code."""

from __future__ import annotations

import re

_WORDS = """
alignas alignof asm auto bool break case catch char class const constexpr const_cast continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for
friend goto if inline int long mutable namespace new noexcept nullptr operator private protected
public register reinterpret_cast return short signed sizeof static static_cast struct switch
template this throw true try typedef typeid typename union unsigned using virtual void volatile
while and or not xor bitand bitor compl load store convert refer load_strided static_assert
kernwright Layout Run V U at row rows lane length item items first count width live end begin
stop part parts block blocks chunk mine u v k j out half blockIdx threadIdx gridDim blockDim
warpSize to_compute from_compute map_element exp log sqrt pow sin cos tan fmod floor ceil abs
fabs rint min max erf
"""
# Functions of CUDA's headers: a kernel of such a name would be one more overload of them.
_FUNCTIONS = """
abort abs acos acosh asin asinh assert atan atan2 atanh cbrt ceil clock clock64 copysign cos cosh
cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod free
frexp hypot ilogb isfinite isinf isnan j0 j1 jn labs ldexp lgamma llabs llrint llround log log10
log1p log2 logb lrint lround malloc max memcpy memmove memset min modf nan nearbyint nextafter norm
norm3d norm4d normcdf normcdfinv pow printf rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d
round rsqrt scalbln scalbn signbit sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1
yn
"""
_RESERVED = set(_WORDS.split())
_RESERVED |= {name + end for name in _FUNCTIONS.split() for end in ("", "f")}
# The kernel's own names have such forms.
_OWN = re.compile(r"[tirj]\d+(_rest)?|stored\d*|.*_(run|memory|start|part|finish|\d+)|[A-Z]\w*")


def safe_names(names: list[str]) -> list[str]:
    """For each name itself where it can stand in a kernel, else one that is like it."""
    taken: set[str] = set()
    made = []
    for name in names:
        text = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
        if text in _RESERVED or _OWN.fullmatch(text) or text.startswith("_"):
            text = f"{text.lstrip('_')}_in"
        while text in taken:
            text += "x"
        taken.add(text)
        made.append(text)
    return made
