// The JSON forms of docs/cli.md. Members keep their order; text that is not UTF-8 (pieces of a
// damaged vocabulary) gets U+FFFD; numbers that are not finite become null.
#pragma once

#include <string_view>

#include "espalier/base/json.h"
#include "espalier/engine/engine.h"
#include "espalier/engine/session.h"

namespace espalier::cli {

void print_json(const OrderedJson& json);

std::string_view name_of(decode::FinishReason reason);
OrderedJson timings_json(const engine::Timings& timings, double load_ms);
OrderedJson speculation_json(const decode::SpeculationStatistics& statistics);
OrderedJson packed_json(const engine::Engine& engine);
OrderedJson memory_json(const engine::Engine& engine, int64_t kv_bytes);

}  // namespace espalier::cli
