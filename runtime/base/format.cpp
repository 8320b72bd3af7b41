// The part of fmt without templates, compiled here, so no library of fmt is linked.
#include "base/format.h"

#ifndef FMT_HEADER_ONLY
// Numbers are written the same in all locales; the C++ library's would come along for nothing.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format-inl.h>

// NOTE: what fmt's headers declare and leave to its library; other releases need another list
// (cmake/Dependencies.cmake takes fmt as headers alone there).
FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float value) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double value) noexcept;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref locale);
template FMT_API char decimal_point_impl(locale_ref locale);
template FMT_API void buffer<char>::append(const char* begin, const char* end);
template FMT_API void vformat_to(buffer<char>& out, string_view pattern,
                                 basic_format_args<buffer_context<char>> arguments,
                                 locale_ref locale);

}  // namespace detail
FMT_END_NAMESPACE
#endif
