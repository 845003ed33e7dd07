// Program text: a program as people, tests, exporters and fuzzers read it. print() and parse() are
// inverses: parse(print(p)) == p for every program, valid or not, and doubles keep every bit. The
// form is stable.
//
//   program window64_kv512_argmax rows=64 kv_rows=512 selected=1 head=argmax
//   state $0 layers.0.kv key_value[512, 192]
//   weight @0 model.layers.0.input_layernorm.weight rows=0+1/1 columns=576
//   value %0 embeddings f32[64, 576]
//   inputs %0 %1 %2 %3
//   %4 = rms_norm(%0) @0 {epsilon=1e-05}   # layers.0.attention_norm [64, 576]
//   kv_write(%9, %7) $0
//   outputs %600 %601
//
// Declarations come first, each kind numbered from 0; text from '#' to the end of a line is a
// comment. Parsing checks the form only; validate() says whether the program means something.
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "espalier/base/result.h"
#include "espalier/program/program.h"

namespace espalier::program {

// Longest text that parse() takes, in bytes.
inline constexpr size_t kMaxProgramTextBytes = size_t{64} << 20;

std::string print(const Program& program);

// Errors name line and column.
Result<Program> parse(std::string_view text);

}  // namespace espalier::program
