// The file of one packed content, changed, and read for a content that may be another: accepted
// exactly where head, size and checksums are right, and replaced where the folder of packed files
// has it. The bytes choose both contents and the changes.
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/check.h"
#include "espalier/base/checksum.h"
#include "espalier/base/mapped_file.h"
#include "espalier/units/cpu/packed_cache.h"

namespace espalier::units::cpu {
namespace {

// The input, byte by byte; zeros behind its end.
struct Choices {
  std::span<const uint8_t> bytes;

  size_t next() {
    if (bytes.empty()) return 0;
    const size_t value = bytes.front();
    bytes = bytes.subspan(1);
    return value;
  }
  size_t next_place(size_t limit) {
    const size_t high = next();
    return (256 * high + next()) % limit;
  }
};

// The key is of several pages or less, blocks are of any size; packed bytes follow from the key.
PackedContent choose_content(Choices& choices) {
  PackedContent content;
  const auto letter = static_cast<char>(choices.next());
  content.key.assign(choices.next() * 40, letter);
  content.blocks.resize(choices.next() % 6);
  int64_t end = 0;
  for (PackedBlock& block : content.blocks) {
    block = {end, static_cast<int64_t>(choices.next() * 3)};
    end += block.byte_count;
  }
  content.pack = [letter, blocks = content.blocks](size_t index, std::byte* out) -> Status {
    for (int64_t i = 0; i < blocks[index].byte_count; ++i) {
      out[i] = static_cast<std::byte>(i + letter + static_cast<int64_t>(index));
    }
    return Ok{};
  };
  return content;
}

std::string head_of(const PackedContent& content) {
  std::string head = "espalier packed weights\n" + content.key + '\0';
  head.resize((head.size() + 4095) / 4096 * 4096);
  return head;
}

std::string checksum_of(std::string_view bytes) {
  const uint64_t value = checksum(std::as_bytes(std::span(bytes)));
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

// As packed_file.h describes it.
std::string file_of(const PackedContent& content) {
  std::string payload(static_cast<size_t>(content.byte_count()), '\0');
  std::string table;
  for (size_t i = 0; i < content.blocks.size(); ++i) {
    char* out = payload.data() + content.blocks[i].offset;
    CHECK(content.pack(i, reinterpret_cast<std::byte*>(out)).ok());
    table += checksum_of({out, static_cast<size_t>(content.blocks[i].byte_count)});
  }
  return head_of(content) + payload + table;
}

// The table that the payload of `file` asks for; "" where the file is of another size.
std::string right_table(std::string_view file, const PackedContent& content) {
  const std::string head = head_of(content);
  const auto payload_bytes = static_cast<size_t>(content.byte_count());
  if (file.size() != head.size() + payload_bytes + 8 * content.blocks.size()) return "";
  std::string table;
  for (const PackedBlock& block : content.blocks) {
    table += checksum_of(file.substr(head.size() + static_cast<size_t>(block.offset),
                                     static_cast<size_t>(block.byte_count)));
  }
  return table;
}

bool is_valid(std::string_view file, const PackedContent& content) {
  return file.size() == file_of(content).size() && file.starts_with(head_of(content)) &&
         file.ends_with(right_table(file, content));
}

void change(std::string& file, const PackedContent& content, Choices& choices) {
  while (!choices.bytes.empty()) {
    switch (choices.next() % 4) {
      case 0: {
        if (file.empty()) break;
        const size_t place = choices.next_place(file.size());
        file[place] = static_cast<char>(choices.next());
        break;
      }
      case 1:
        file.resize(choices.next_place(file.size() + 1));
        break;
      case 2: {
        const size_t count = choices.next();
        file.append(count, static_cast<char>(choices.next()));
        break;
      }
      default:  // checksums that fit, of bytes that do not
        const std::string table = right_table(file, content);
        file.replace(file.size() - table.size(), table.size(), table);
    }
  }
}

void read_bytes(std::string_view file, const PackedContent& content, ThreadPool& pool) {
  // A copy of the exact size, so that the address sanitizer sees a read past the end.
  const std::vector<char> exact(file.begin(), file.end());
  const auto bytes = std::as_bytes(std::span(exact));
  const auto payload = find_payload("bytes", bytes, content, pool);
  CHECK_EQ(payload.ok(), is_valid(file, content));
  if (payload.ok()) CHECK(*payload == bytes.data() + head_of(content).size());
}

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "packed_fuzz.XXXXXX").string();
  Folder() { CHECK(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
};

void read_through_folder(const std::string& file, const PackedContent& content, ThreadPool& pool) {
  static const Folder kFolder;
  const std::string path = packed_file_path(kFolder.path, content.key);
  std::ofstream(path, std::ios::binary) << file;
  const auto weights = obtain_packed_weights(content, {.folder = kFolder.path}, pool);
  CHECK(weights.ok());
  const bool valid = is_valid(file, content);
  CHECK(weights->report.origin == (valid ? PackedOrigin::kCache : PackedOrigin::kWritten));
  const std::string expected = valid ? file : file_of(content);
  CHECK(read_text_file(path).value() == expected);
  CHECK(std::memcmp(weights->payload.bytes, expected.data() + head_of(content).size(),
                    static_cast<size_t>(content.byte_count())) == 0);
  std::filesystem::remove(path);
}

void write_change_and_read(Choices choices) {
  static ThreadPool pool(1);
  const PackedContent written = choose_content(choices);
  const PackedContent read = choices.next() % 2 == 0 ? written : choose_content(choices);
  std::string file = file_of(written);
  change(file, read, choices);
  read_bytes(file, read, pool);
  read_through_folder(file, read, pool);
}

}  // namespace
}  // namespace espalier::units::cpu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  espalier::units::cpu::write_change_and_read({{data, size}});
  return 0;
}
