// Text: UTF-8 bytes that remember, byte by byte, whether they came from the template or from a
// user. Provenance is a list of edges: positions where it changes, beginning with "template" before
// byte 0. So a literal has no edges, user text has the single edge 0, and slicing and joining are a
// few binary searches. A value type; not for text whose origin does not matter (std::string is
// enough there).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::text::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string_view bytes, bool from_user) { append(bytes, from_user); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool has_user() const { return !edges_.empty(); }
  bool from_user(size_t offset) const;  // of the byte at `offset`, which is below size()

  Text substr(size_t begin, size_t end) const;  // bytes [begin, end), begin <= end <= size()
  void append(std::string_view bytes, bool from_user);
  void append(const Text& other);
  void mark_all_from_user();

  // Calls visit(bytes, from_user) for each run of one provenance, in order.
  template <typename Visit>
  void for_each_run(Visit&& visit) const {
    size_t begin = 0;
    for (size_t i = 0; i <= edges_.size() && begin < size(); ++i) {
      const size_t end = i < edges_.size() ? edges_[i] : size();
      if (end > begin) visit(std::string_view(bytes_).substr(begin, end - begin), (i & 1) != 0);
      begin = end;
    }
  }

 private:
  bool ends_in_user() const { return (edges_.size() & 1) != 0; }

  std::string bytes_;
  std::vector<uint32_t>
      edges_;  // strictly rising, each below size(); Budget keeps texts below 4 GiB
};

}  // namespace espalier::text::jinja
