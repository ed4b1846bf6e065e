#include "text/tool_syntax.h"

#include <gtest/gtest.h>

namespace bezel {
namespace {

using nlohmann::json;

std::string declare(const json& function) {
  ItemWriter out;
  const Status status = write_declaration({{"type", "function"}, {"function", function}}, "tools[0]", out);
  return status ? join(out.items()) : "error: " + status.error().message;
}

std::string declare_property(const json& schema) {
  std::string text = declare({{"name", "f"}, {"parameters", {{"properties", {{"p", schema}}}}}});
  const std::string prefix = "declaration:f{description:<|\"|><|\"|>,parameters:{properties:{p:";
  const std::string suffix = "},type:<|\"|>OBJECT<|\"|>}}";
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return text;
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

// Text with `"` standing for the quote token.
std::vector<ChatItem> body(std::string_view text) {
  ItemWriter out;
  for (const char c : text) {
    if (c == '"') {
      out.special(marker::kQuote);
    } else {
      out.text(std::string_view(&c, 1));
    }
  }
  return out.take();
}

std::string parse(const std::vector<ChatItem>& items, CallOptions options = {}) {
  const auto call = parse_call(items, options);
  return call ? call->name + " " + call->arguments : "error: " + call.error().message;
}

std::string parse(std::string_view text, CallOptions options = {}) { return parse(body(text), options); }

TEST(ToolDeclaration, FieldsInOrder) {
  EXPECT_EQ(declare_property({{"type", "string"},
                              {"description", "d"},
                              {"enum", {"a", 1}},
                              {"nullable", true},
                              {"format", "date"},
                              {"default", "a"}}),
            R"({description:<|"|>d<|"|>,enum:[<|"|>a<|"|>,1],nullable:true,type:<|"|>STRING<|"|>})");
  EXPECT_EQ(declare_property({{"type", "integer"}, {"enum", {1, 2}}, {"minimum", 3}}),
            R"({type:<|"|>INTEGER<|"|>})");
  EXPECT_EQ(
      declare_property({{"type", "object"}, {"properties", json::object()}, {"required", json::array()}}),
      R"({properties:{},type:<|"|>OBJECT<|"|>})");
  EXPECT_EQ(declare_property({{"type", "array"}, {"items", json::object()}}), R"({type:<|"|>ARRAY<|"|>})");
  EXPECT_EQ(declare_property(json::object()), R"({type:<|"|><|"|>})");
}

TEST(ToolDeclaration, TypesMayBeLists) {
  EXPECT_EQ(declare_property({{"type", {"null", "string"}}, {"enum", {"a"}}}),
            R"({enum:[<|"|>a<|"|>],nullable:true,type:<|"|>STRING<|"|>})");
  EXPECT_EQ(declare_property({{"type", {"string", "number"}}}),
            R"({type:[<|"|>STRING<|"|>,<|"|>NUMBER<|"|>]})");
}

TEST(ToolDeclaration, ItemsAreWrittenKeyByKeyWithQuotedNestedKeys) {
  EXPECT_EQ(
      declare_property(
          {{"type", "array"},
           {"items", {{"type", "string"}, {"default", {{"k", {1}}}}, {"x", nullptr}, {"enum", {"a"}}}}}),
      R"({items:{default:{<|"|>k<|"|>:[1]},enum:[<|"|>a<|"|>],type:<|"|>STRING<|"|>},type:<|"|>ARRAY<|"|>})");
}

TEST(ToolDeclaration, SortsWithoutRegardToCase) {
  const json schema = {{"type", "object"},
                       {"properties", {{"b", json::object()}, {"A", json::object()}, {"C", json::object()}}}};
  const std::string text = declare_property(schema);
  EXPECT_LT(text.find("A:"), text.find("b:"));
  EXPECT_LT(text.find("b:"), text.find("C:"));
}

TEST(ToolDeclaration, ResponseSchema) {
  EXPECT_EQ(
      declare(
          {{"name", "f"}, {"description", "d"}, {"response", {{"type", "object"}, {"description", "r"}}}}),
      R"(declaration:f{description:<|"|>d<|"|>,response:{description:<|"|>r<|"|>,type:<|"|>OBJECT<|"|>}})");
}

TEST(ToolDeclaration, HostileSchemas) {
  EXPECT_EQ(declare({{"name", 1}}), "error: tools[0].function.name must be a string, not number.");
  EXPECT_EQ(declare(json::object()), "error: tools[0].function has no name.");
  EXPECT_EQ(declare(1), "error: tools[0].function must be an object, not number.");
  EXPECT_EQ(declare_property(true),
            "error: tools[0].function.parameters.properties.p must be an object, not boolean.");
  EXPECT_EQ(declare_property({{"type", 1}}),
            "error: tools[0].function.parameters.properties.p.type must be a string, not number.");
  EXPECT_EQ(
      declare_property({{"type", "array"}, {"items", {{"required", {1}}}}}),
      "error: tools[0].function.parameters.properties.p.items.required[0] must be a string, not number.");
  json schema = {{"type", "string"}};
  for (int i = 0; i < 500; ++i) schema = {{"type", "object"}, {"properties", {{"p", std::move(schema)}}}};
  EXPECT_TRUE(declare_property(schema).ends_with("is nested more than 64 levels deep."));
  schema = {{"type", "string"}};
  for (int i = 0; i < 500; ++i)
    schema = {{"type", "array"}, {"items", {{"properties", {{"p", std::move(schema)}}}}}};
  EXPECT_TRUE(declare_property(schema).ends_with("is nested more than 64 levels deep."));
}

TEST(ToolCallParser, ReadsWhatTheRendererWrites) {
  const json cases = {
      json::object(),
      {{"city", "Paris"}, {"n", 3}, {"x", -2.5e-7}, {"t", true}, {"f", false}, {"z", nullptr}},
      {{"list", {1, "a", {2, {}}, {{"k", "v"}}}}, {"o", {{"p", {{"q", "r"}}}}}},
      {{"text", "quotes \" ' \\ braces }{][ commas ,:\n\ttabs \u00e9 \u4f60 and <|\"|> spelled out"}},
      {{"empty", ""}, {"space", "  "}}};
  for (const json& arguments : cases) {
    ItemWriter out;
    out.text("call:f");
    ASSERT_TRUE(write_arguments(arguments, "x", out));
    const auto call = parse_call(out.items(), {});
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_EQ(call->name, "f");
    EXPECT_EQ(json::parse(call->arguments, nullptr, false), arguments);
    EXPECT_TRUE(parse_call(out.items(), {.repair = false}));
  }
}

TEST(ToolCallParser, ToleratesWhiteSpaceAndJsonHabits) {
  EXPECT_EQ(parse(" call:f { a : 1 , b : [ 2 , 3 ] } \n"), R"(f {"a":1,"b":[2,3]})");
  const std::vector<ChatItem> quoted = {{false, R"(call:f{"a": "x\n,}", "b": {"c": ""}})"}};
  EXPECT_EQ(parse(quoted), R"(f {"a":"x\n,}","b":{"c":""}})");
  EXPECT_EQ(parse("call:ns.f-1{key with space:\"v\"}"), R"(ns.f-1 {"key with space":"v"})");
}

TEST(ToolCallParser, Repairs) {
  EXPECT_EQ(parse("call:f{a:'it's, ok',b:1}"), R"(f {"a":"it's, ok","b":1})");
  EXPECT_EQ(parse("call:f{a:\"text}"), R"(f {"a":"text"})");
  EXPECT_EQ(parse("call:f{a:\"if (x) {y}}"), R"(f {"a":"if (x) {y}"})");
  EXPECT_EQ(parse("call:f{a:{b:[\"text]}}"), R"(f {"a":{"b":["text"]}})");
  EXPECT_EQ(parse("call:f{a:\"text"), R"(f {"a":"text"})");
  EXPECT_EQ(parse("call:f{a:\"text\""), R"(f {"a":"text"})");
  EXPECT_EQ(parse("call:f{a:{b:[1,2"), R"(f {"a":{"b":[1,2]}})");
  for (const char* text : {"call:f{a:'x'}", "call:f{a:\"text}", "call:f{a:\"text\"", "call:f{a:1"}) {
    EXPECT_TRUE(parse(text, {.repair = false}).starts_with("error: ")) << text;
  }
}

TEST(ToolCallParser, UnquotedStringsWhereTheSchemaSaysString) {
  const json tools = {
      {{"function",
        {{"name", "f"},
         {"parameters", {{"properties", {{"q", {{"type", "string"}}}, {"n", {{"type", "integer"}}}}}}}}}}};
  const CallOptions options{.tools = &tools};
  EXPECT_EQ(parse("call:f{n:1,q:hello, world: {x}}", options), R"(f {"n":1,"q":"hello, world: {x}"})");
  EXPECT_EQ(parse("call:f{q:2024-05-01, n:2}", options), R"(f {"q":"2024-05-01","n":2})");
  EXPECT_EQ(parse("call:f{q:open", options), R"(f {"q":"open"})");
  EXPECT_TRUE(parse("call:f{n:one}", options).starts_with("error: "));
  EXPECT_TRUE(parse("call:g{q:x}", options).starts_with("error: "));
  EXPECT_TRUE(parse("call:f{q:x}").starts_with("error: "));
  for (const json& strange : {json(1), json::array({1}), json::array({{{"function", 1}}}),
                              json::array({{{"function", {{"name", "f"}, {"parameters", 1}}}}})}) {
    EXPECT_TRUE(parse("call:f{q:x}", {.tools = &strange}).starts_with("error: "));
  }
}

TEST(ToolCallParser, HostileText) {
  for (const char* text : {"", "call:", "call:f", "call:{}", "f{}", "call:f{}}", "call:f{a}", "call:f{:1}",
                           "call:f{a:}", "call:f{a:1,}", "call:f{a:1 b:2}", "call:f{a:01}", "call:f{a:nul}",
                           "call:f{,}", "call:f{a:[}", "call:f{a:1]", "call:f{\"a:1}", "call:\"{}"}) {
    EXPECT_TRUE(parse(text).starts_with("error: ")) << text;
  }
  std::string deep = "call:f{a:";
  deep.append(100000, '[');
  EXPECT_EQ(parse(deep), "error: The arguments of a tool call are nested more than 64 levels deep.");
  const std::vector<ChatItem> broken = {
      {false, "call:f{a:"}, {true, "<|\"|>"}, {false, "\xff\xc3\x01"}, {true, "<|\"|>"}, {false, "}"}};
  EXPECT_EQ(parse(broken), "f {\"a\":\"\ufffd\ufffd\\u0001\"}");
}

}  // namespace
}  // namespace bezel
