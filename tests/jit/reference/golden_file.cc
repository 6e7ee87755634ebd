#include "tests/jit/reference/golden_file.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace kiln {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "KILNGOLD";
constexpr uint32_t kVersion = 1;

// Takes fields off the front of `rest_`. Reading beyond the end gives zeros
// and empty strings, and ok() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty(); }

  std::string Take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string bytes(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return bytes;
  }

  template <typename Number>
  Number TakeNumber() {
    const std::string bytes = Take(sizeof(Number));
    Number number{};
    if (ok_) std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }

  std::string TakeBytes() { return Take(TakeNumber<uint64_t>()); }

  std::vector<double> TakeDoubles() {
    const std::string bytes = TakeBytes();
    std::vector<double> doubles(bytes.size() / sizeof(double));
    ok_ = ok_ && bytes.size() % sizeof(double) == 0;
    if (ok_) std::memcpy(doubles.data(), bytes.data(), bytes.size());
    return doubles;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

GoldenCase ReadCase(Reader* reader) {
  GoldenCase golden;
  golden.name = reader->TakeBytes();
  golden.plan = reader->TakeBytes();
  for (auto i = reader->TakeNumber<uint64_t>(); i > 0 && reader->ok(); --i) {
    golden.inputs.push_back(reader->TakeBytes());
  }
  for (auto i = reader->TakeNumber<uint64_t>(); i > 0 && reader->ok(); --i) {
    golden.outputs.push_back(reader->TakeDoubles());
  }
  return golden;
}

}  // namespace

absl::StatusOr<GoldenFile> ParseGoldenFile(const std::string& bytes) {
  Reader reader(bytes);
  if (reader.Take(kMagic.size()) != kMagic) {
    return absl::DataLossError("The file does not begin with KILNGOLD.");
  }
  if (reader.TakeNumber<uint32_t>() != kVersion) {
    return absl::DataLossError("The golden file has another version.");
  }
  GoldenFile file;
  file.script = reader.TakeBytes();
  file.torch_version = reader.TakeBytes();
  for (auto i = reader.TakeNumber<uint64_t>(); i > 0 && reader.ok(); --i) {
    file.cases.push_back(ReadCase(&reader));
  }
  if (!reader.ok()) return absl::DataLossError("The golden file is cut off.");
  if (!reader.AtEnd()) {
    return absl::DataLossError("Bytes follow the last golden case.");
  }
  return file;
}

absl::StatusOr<GoldenFile> ReadGoldenFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError("There is no golden file: " + path);
  return ParseGoldenFile(
      std::string(std::istreambuf_iterator<char>(stream), {}));
}

}  // namespace kiln
