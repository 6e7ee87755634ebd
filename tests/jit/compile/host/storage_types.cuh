// Stands in for kernel_sources/storage_types.cuh, whose conversions are PTX.
#ifndef KILN_TESTS_JIT_COMPILE_HOST_STORAGE_TYPES_CUH_
#define KILN_TESTS_JIT_COMPILE_HOST_STORAGE_TYPES_CUH_

namespace kiln {

struct Float16 {
  _Float16 value;
};
struct BFloat16 {
  unsigned short bits;
};

inline float ToFloat(float value) { return value; }
inline float ToFloat(Float16 value) { return static_cast<float>(value.value); }
inline float ToFloat(BFloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

inline void FromFloat(float value, float* result) { *result = value; }
inline void FromFloat(float value, Float16* result) {
  result->value = static_cast<_Float16>(value);
}
inline void FromFloat(float value, BFloat16* result) {
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  result->bits = value == value ? rounded : 0x7fff;
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

#endif  // KILN_TESTS_JIT_COMPILE_HOST_STORAGE_TYPES_CUH_
