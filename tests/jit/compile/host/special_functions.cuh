// Stands in for kernel_sources/special_functions.cuh, under the same guard:
// the same bounds, met by rounding correctly and then moving by up to 1 ulp,
// in a direction that looks random but is a function of the result; the tangent
// by 2^-11 of itself.
#ifndef KILN_KERNEL_SOURCES_SPECIAL_FUNCTIONS_CUH_
#define KILN_KERNEL_SOURCES_SPECIAL_FUNCTIONS_CUH_

namespace kiln {

inline float HostFlushed(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

// `exact` rounded, then its neighbour above or below, or itself. Powers of two
// stay: the instructions have them exactly.
inline float HostNear(double exact) {
  const float rounded = HostFlushed(static_cast<float>(exact));
  const unsigned bits = HostBitCast<unsigned>(rounded);
  const bool is_special = !(std::fabs(rounded) < HUGE_VALF) || rounded == 0;
  if (is_special || (bits & 0x7fffffu) == 0) return rounded;
  const int step = static_cast<int>(bits * 2654435761u >> 8) % 3 - 1;
  return HostBitCast<float>(bits + step);
}

inline float Exp2(float x) {
  return HostNear(std::exp2(double{HostFlushed(x)}));
}
inline float ApproximateTanh(float x) {
  const bool is_up = (HostBitCast<unsigned>(x) * 2654435761u >> 20 & 1) != 0;
  const float factor = is_up ? 1 + 0x1p-11f : 1 - 0x1p-11f;
  return std::clamp(std::tanh(x) * factor, -1.0f, 1.0f);
}
inline float Reciprocal(float x) { return HostNear(1.0 / HostFlushed(x)); }

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_SPECIAL_FUNCTIONS_CUH_
