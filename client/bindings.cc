#include <string>

#include "client/session.h"

namespace kiln {

Bindings& Bindings::Input(int index, const SharedBuffer& buffer,
                          int64_t offset_bytes) {
  entries_.push_back({false, index, &buffer, offset_bytes});
  return *this;
}

Bindings& Bindings::Input(std::string_view name, const SharedBuffer& buffer,
                          int64_t offset_bytes) {
  entries_.push_back({false, std::string(name), &buffer, offset_bytes});
  return *this;
}

Bindings& Bindings::Output(int index, const SharedBuffer& buffer,
                           int64_t offset_bytes) {
  entries_.push_back({true, index, &buffer, offset_bytes});
  return *this;
}

Bindings& Bindings::Output(std::string_view name, const SharedBuffer& buffer,
                           int64_t offset_bytes) {
  entries_.push_back({true, std::string(name), &buffer, offset_bytes});
  return *this;
}

}  // namespace kiln
