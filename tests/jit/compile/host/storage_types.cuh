// Stands in for kernel_sources/storage_types.cuh, under the same guard: its
// conversions are PTX.
#ifndef KILN_KERNEL_SOURCES_STORAGE_TYPES_CUH_
#define KILN_KERNEL_SOURCES_STORAGE_TYPES_CUH_

namespace kiln {

struct Float16 {
  unsigned short bits;
};
struct BFloat16 {
  unsigned short bits;
};

inline float ToFloat(float value) { return value; }
// Multiplying by 2^112 moves the exponent, denormals included.
inline float ToFloat(Float16 value) {
  const unsigned sign = (value.bits & 0x8000u) << 16;
  const unsigned rest = value.bits & 0x7fffu;
  if (rest >= 0x7c00) {
    return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  }
  const float magnitude = __uint_as_float(rest << 13) * 0x1p112f;
  return __uint_as_float(sign | HostBitCast<unsigned>(magnitude));
}
inline float ToFloat(BFloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

inline void FromFloat(float value, float* result) { *result = value; }
// The quotient by the unit in the last place is exact, so it rounds once.
inline void FromFloat(float value, Float16* result) {
  const unsigned sign = __float_as_uint(value) >> 16 & 0x8000u;
  const float magnitude = std::fabs(value);
  if (value != value) {
    result->bits = 0x7fff;
  } else if (magnitude >= 65520.0f) {
    result->bits = static_cast<unsigned short>(sign | 0x7c00u);
  } else {
    const int exponent =
        std::max(magnitude > 0 ? std::ilogb(magnitude) : -14, -14);
    const float unit = std::ldexp(1.0f, exponent - 10);
    const float rounded = std::nearbyint(magnitude / unit) * unit;
    const float scaled = rounded * 0x1p-112f;
    result->bits =
        static_cast<unsigned short>(sign | __float_as_uint(scaled) >> 13);
  }
}
inline void FromFloat(float value, BFloat16* result) {
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  result->bits = value == value ? rounded : 0x7fff;
}

template <typename T>
unsigned RoundedPair(float first, float second, T) {
  T lower, upper;
  FromFloat(first, &lower);
  FromFloat(second, &upper);
  return static_cast<unsigned>(upper.bits) << 16 | lower.bits;
}

template <typename T, typename Index>
float Load(const T* tensor, Index i) {
  return ToFloat(tensor[i]);
}
template <typename T, typename Index>
void Store(T* tensor, Index i, float value) {
  FromFloat(value, &tensor[i]);
}
template <typename T>
float Round(float value) {
  T rounded;
  FromFloat(value, &rounded);
  return ToFloat(rounded);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STORAGE_TYPES_CUH_
