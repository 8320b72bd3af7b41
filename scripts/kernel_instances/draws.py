"""Instances of the distributions of random numbers."""

REAL = ["Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
REAL += ["Float16", "BFloat16", "Float32", "Float64"]
PARAMETRIC_REAL = ["UniformDraw<{}>", "Scaled<Normal, {}, 1>", "Scaled<Exponential, {}, 0>"]
PARAMETRIC_REAL += ["GammaDraw<{}>"]
PARAMETRIC_REAL += [
    f"Continuous<{kind}, {{}}>"
    for kind in (
        *("Laplace", "Logistic", "Gumbel", "Cauchy", "Lognormal", "Weibull", "Pareto"),
        *("Triangular", "TruncatedNormal", "LogGamma", "Beta", "StandardT"),
    )
]

DRAWS = {
    "distributions.cu": [
        *(
            f"random_fill<{kind}, {dtype}, {packed}>"
            for kind in ("Uniform", "Normal", "Exponential", "Gamma")
            for dtype in ("Float16", "BFloat16", "Float32", "Float64")
            for packed in ("true", "false")
        ),
        *(f"random_fill<Bernoulli, {dtype}, true>" for dtype in REAL),
        *(f"random_fill<Integers, {dtype}, true>" for dtype in REAL[1:9]),
        "random_fill<WideIntegers, Int64, true>",
        "random_fill<WideIntegers, UInt64, true>",
        "advance_counter",
        "take_counter",
    ],
    "parametric.cu": [
        *(
            f"random_parametric<{kind.format(dtype)}, {dtype}>"
            for kind in PARAMETRIC_REAL
            for dtype in ("Float16", "Float32", "Float64")
        ),
        *(f"random_parametric<BernoulliDraw<{dtype}>, {dtype}>" for dtype in ("Bool", "Float32")),
        *(f"random_parametric<IntegerDraw<{dtype}>, {dtype}>" for dtype in ("Int8", "UInt64")),
        *(
            f"random_parametric<Discrete<{kind}, {dtype}>, {dtype}>"
            for kind in ("Poisson", "Binomial", "Geometric", "NegativeBinomial", "Zipf")
            for dtype in ("Int32", "Int64")
        ),
        "random_multinomial<Int64>",
    ],
}
