#include "text/tool_syntax.h"

#include <algorithm>
#include <vector>

#include "base/format_text.h"
#include "text/json_fields.h"

namespace bezel {
namespace {

using nlohmann::json;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

// Templates sort keys without regard to case; the JSON library has them in byte order, which breaks ties.
std::vector<json::const_iterator> sorted_members(const json& object) {
  std::vector<json::const_iterator> members;
  for (auto it = object.begin(); it != object.end(); ++it) members.push_back(it);
  std::ranges::stable_sort(members, [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a.key(), b.key(), [](char x, char y) {
      return static_cast<unsigned char>(lower(x)) < static_cast<unsigned char>(lower(y));
    });
  });
  return members;
}

Status check_depth(int depth, std::string_view where) {
  if (depth > kMaxToolNesting)
    return invalid("{} is nested more than {} levels deep.", where, kMaxToolNesting);
  return {};
}

Status write_nested(const json& value, KeyStyle keys, std::string_view where, int depth, ItemWriter& out) {
  TRY(check_depth(depth, where));
  if (value.is_string()) {
    out.quoted(*value.get_ptr<const std::string*>());
  } else if (value.is_array()) {
    out.text("[");
    bool first = true;
    for (const json& element : value) {
      if (!first) out.text(",");
      first = false;
      TRY(write_nested(element, keys, where, depth + 1, out));
    }
    out.text("]");
  } else if (value.is_object()) {
    out.text("{");
    bool first = true;
    for (const auto& entry : sorted_members(value)) {
      if (!first) out.text(",");
      first = false;
      if (keys == KeyStyle::kQuoted) {
        out.quoted(entry.key());
      } else {
        out.text(entry.key());
      }
      out.text(":");
      TRY(write_nested(*entry, keys, where, depth + 1, out));
    }
    out.text("}");
  } else if (value.is_binary() || value.is_discarded()) {
    return wrong_type(where, "a JSON value", value);
  } else {
    out.text(value.dump());
  }
  return {};
}

// Writes `name:` fields of one object, with commas between them.
class Fields {
 public:
  explicit Fields(ItemWriter& out) : out_(out) { out_.text("{"); }
  ItemWriter& begin(std::string_view name) {
    if (!first_) out_.text(",");
    first_ = false;
    out_.text(name);
    out_.text(":");
    return out_;
  }
  void end() { out_.text("}"); }

 private:
  ItemWriter& out_;
  bool first_ = true;
};

// A schema's type in capitals. JSON Schema also allows a list; "null" in it means nullable.
struct SchemaType {
  std::vector<std::string> names;
  bool nullable = false;

  bool is(std::string_view name) const { return !names.empty() && names.front() == name; }
};

Result<SchemaType> schema_type(const json& schema, std::string_view where) {
  SchemaType type;
  const json* value = member(schema, "type");
  if (value == nullptr) return type;
  if (value->is_array()) {
    for (const json& name : *value) {
      std::string text = upper(TRY(as_string(name, format_text("{}.type[]", where))));
      if (text == "NULL") {
        type.nullable = true;
      } else {
        type.names.push_back(std::move(text));
      }
    }
  } else {
    type.names.push_back(upper(TRY(as_string(*value, format_text("{}.type", where)))));
  }
  return type;
}

void write_type(const SchemaType& type, ItemWriter& out) {
  if (type.names.size() < 2) {
    out.quoted(type.names.empty() ? std::string_view() : type.names.front());
    return;
  }
  out.text("[");
  for (std::size_t i = 0; i < type.names.size(); ++i) {
    if (i > 0) out.text(",");
    out.quoted(type.names[i]);
  }
  out.text("]");
}

Status write_strings(const json& list, std::string_view where, ItemWriter& out) {
  out.text("[");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out.text(",");
    out.quoted(TRY(as_string(list[i], format_text("{}[{}]", where, i))));
  }
  out.text("]");
  return {};
}

Status write_properties(const json& properties, std::string_view where, int depth, ItemWriter& out);

// The schema of a list's elements is written key by key, unlike that of a property.
Status write_items(const json& items, std::string_view where, int depth, ItemWriter& out) {
  Fields fields(out);
  for (const auto& entry : sorted_members(items)) {
    if (entry->is_null()) continue;
    const std::string path = format_text("{}.{}", where, entry.key());
    fields.begin(entry.key());
    if (entry.key() == "properties") {
      if (!entry->is_object()) return wrong_type(path, "an object", *entry);
      TRY(write_properties(*entry, path, depth + 1, out));
    } else if (entry.key() == "required") {
      if (!entry->is_array()) return wrong_type(path, "a list", *entry);
      TRY(write_strings(*entry, path, out));
    } else if (entry.key() == "type") {
      write_type(TRY(schema_type(items, where)), out);
    } else {
      TRY(write_nested(*entry, KeyStyle::kQuoted, path, depth + 1, out));
    }
  }
  fields.end();
  return {};
}

Status write_property(const json& schema, std::string_view where, int depth, ItemWriter& out) {
  if (!schema.is_object()) return wrong_type(where, "an object", schema);
  const SchemaType type = TRY(schema_type(schema, where));
  Fields fields(out);
  const std::string_view description = TRY(string_member(schema, "description", where));
  if (!description.empty()) fields.begin("description").quoted(description);
  if (type.is("STRING")) {
    const json* values = TRY(list_member(schema, "enum", where));
    if (values != nullptr) {
      TRY(write_nested(*values, KeyStyle::kQuoted, format_text("{}.enum", where), depth + 1,
                       fields.begin("enum")));
    }
  } else if (type.is("ARRAY")) {
    const json* items = TRY(object_member(schema, "items", where));
    if (items != nullptr && !items->empty()) {
      TRY(write_items(*items, format_text("{}.items", where), depth + 1, fields.begin("items")));
    }
  }
  const json* nullable = member(schema, "nullable");
  if (type.nullable || (nullable != nullptr && *nullable == true)) fields.begin("nullable").text("true");
  if (type.is("OBJECT")) {
    const json* properties = TRY(object_member(schema, "properties", where));
    if (properties != nullptr) {
      TRY(write_properties(*properties, format_text("{}.properties", where), depth + 1,
                           fields.begin("properties")));
    }
    const json* required = TRY(list_member(schema, "required", where));
    if (required != nullptr) {
      TRY(write_strings(*required, format_text("{}.required", where), fields.begin("required")));
    }
  }
  write_type(type, fields.begin("type"));
  fields.end();
  return {};
}

Status write_properties(const json& properties, std::string_view where, int depth, ItemWriter& out) {
  TRY(check_depth(depth, where));
  Fields fields(out);
  for (const auto& entry : sorted_members(properties)) {
    TRY(write_property(*entry, format_text("{}.{}", where, entry.key()), depth, fields.begin(entry.key())));
  }
  fields.end();
  return {};
}

}  // namespace

Status write_value(const json& value, KeyStyle keys, std::string_view where, ItemWriter& out) {
  return write_nested(value, keys, where, 0, out);
}

Status write_arguments(const json& object, std::string_view where, ItemWriter& out) {
  if (!object.is_object()) return wrong_type(where, "an object", object);
  return write_nested(object, KeyStyle::kBare, where, 0, out);
}

Status write_declaration(const json& tool, std::string_view where, ItemWriter& out) {
  if (!tool.is_object()) return wrong_type(where, "an object", tool);
  const json* function = TRY(object_member(tool, "function", where));
  if (function == nullptr) return invalid("{} has no 'function' object.", where);
  const std::string path = format_text("{}.function", where);
  const std::string_view name = TRY(string_member(*function, "name", path));
  if (name.empty()) return invalid("{} has no name.", path);

  out.text("declaration:");
  out.text(name);
  Fields fields(out);
  fields.begin("description").quoted(TRY(string_member(*function, "description", path)));
  const json* parameters = TRY(object_member(*function, "parameters", path));
  if (parameters != nullptr && !parameters->empty()) {
    const std::string inner = format_text("{}.parameters", path);
    Fields schema(fields.begin("parameters"));
    const json* properties = TRY(object_member(*parameters, "properties", inner));
    if (properties != nullptr && !properties->empty()) {
      TRY(write_properties(*properties, format_text("{}.properties", inner), 1, schema.begin("properties")));
    }
    const json* required = TRY(list_member(*parameters, "required", inner));
    if (required != nullptr) {
      TRY(write_strings(*required, format_text("{}.required", inner), schema.begin("required")));
    }
    schema.begin("type").quoted("OBJECT");
    schema.end();
  }
  const json* response = TRY(object_member(*function, "response", path));
  if (response != nullptr && !response->empty()) {
    Fields schema(fields.begin("response"));
    schema.begin("description")
        .quoted(TRY(string_member(*response, "description", format_text("{}.response", path))));
    schema.begin("type").quoted("OBJECT");
    schema.end();
  }
  fields.end();
  return {};
}

}  // namespace bezel
