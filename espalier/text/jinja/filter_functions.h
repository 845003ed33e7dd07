// The functions behind the table in filters.cc, by the file that holds them. Each gets the filtered
// value and the arguments of its row's parameter list.
#pragma once

#include "espalier/text/jinja/binding.h"
#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja::filters {

// filters_text.cc
Result<Value> capitalize_text(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> center(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> escape(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> forceescape(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> format(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> indent(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> join(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> lower(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> replace_text(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> safe(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> string(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> striptags(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> title(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> trim(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> truncate(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> upper(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> urlencode(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> wordcount(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> tojson(Machine& machine, const Value& value, const Bound& arguments);

// filters_number.cc
Result<Value> absolute(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> filesizeformat(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> round(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> sum(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> to_float(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> to_int(Machine& machine, const Value& value, const Bound& arguments);

// filters_sequence.cc
Result<Value> batch(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> length(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> dictsort(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> first(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> groupby(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> last(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> to_list(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> maximum(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> minimum(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> reverse(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> slice_list(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> sort(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> unique(Machine& machine, const Value& value, const Bound& arguments);

// filters_select.cc
Result<Value> attribute(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> default_value(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> map(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> reject(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> rejectattr(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> select(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> selectattr(Machine& machine, const Value& value, const Bound& arguments);
Result<Value> items(Machine& machine, const Value& value, const Bound& arguments);

}  // namespace espalier::text::jinja::filters
