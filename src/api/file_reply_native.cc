#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "api/file_reply.h"
#include "base/format_text.h"
#include "io/ascii.h"
#include "io/files.h"
#include "io/source.h"

namespace bezel {
namespace {

constexpr std::size_t kPiece = 256 << 10;

// Absolute and without links; nothing where there is no such thing.
std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

std::string etag_of(const std::string& path, u64 size) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return {};
  return format_text("\"{:x}.{:x}-{:x}\"", info.st_mtim.tv_sec, info.st_mtim.tv_nsec, size);
}

bool listed(const HttpRequest& request, const char* header, const std::string& etag, bool otherwise) {
  const std::string* list = request.header(header);
  return list != nullptr ? etag_listed(*list, etag) : otherwise;
}

}  // namespace

void send_file(const HttpRequest& request, HttpReply& reply, const FileAnswer& file) {
  const auto source = open_file(file.path);
  if (!source) {
    reply.send(404, "text/plain; charset=utf-8", "The file is not there any more.\n");
    return;
  }
  const u64 size = (*source)->size();
  const std::string etag = file.etag.empty() ? etag_of(file.path, size) : file.etag;
  reply.header("ETag", etag);
  reply.header("Accept-Ranges", "bytes");
  reply.header("Cache-Control", "no-cache");  // keep it, but ask
  if (!listed(request, "if-match", etag, true)) return reply.send(412, "", "");
  if (listed(request, "if-none-match", etag, false)) return reply.send(304, "", "");

  ByteRange range{ByteRange::Kind::kWhole, 0, size};
  const std::string* asked = request.method == "GET" ? request.header("range") : nullptr;
  const std::string* condition = request.header("if-range");
  // A date as condition never matches: none is given out.
  if (asked != nullptr && (condition == nullptr || *condition == etag)) range = choose_range(*asked, size);
  if (range.kind == ByteRange::Kind::kUnsatisfiable) {
    reply.header("Content-Range", format_text("bytes */{}", size));
    return reply.send(416, "", "");
  }
  const bool part = range.kind == ByteRange::Kind::kPart;
  if (part) {
    reply.header("Content-Range",
                 format_text("bytes {}-{}/{}", range.first, range.first + range.length - 1, size));
  }
  bool going = reply.begin(part ? 206 : 200, file.type, range.length) && request.method == "GET";
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<u64>(kPiece, range.length)));
  for (u64 done = 0; going && done < range.length;) {
    const auto now =
        std::span(piece).first(static_cast<std::size_t>(std::min<u64>(piece.size(), range.length - done)));
    going = run_now((*source)->read(range.first + done, now)).has_value() &&
            reply.write({reinterpret_cast<const char*>(now.data()), now.size()});
    done += now.size();
  }
  reply.end();
}

std::string media_type(const std::string& file_name) {
  static constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".map", "application/json"},
      {".webmanifest", "application/manifest+json"},
      {".wasm", "application/wasm"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".jpg", "image/jpeg"},
      {".jpeg", "image/jpeg"},
      {".webp", "image/webp"},
      {".ico", "image/x-icon"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"},
      {".md", "text/plain; charset=utf-8"},
  };
  const std::string name = lower_case(file_name);
  for (const auto& [ending, type] : kTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

std::optional<std::string> find_static_file(const std::string& root, const std::vector<std::string>& path) {
  const auto folder = real_path(root);
  if (!folder) return std::nullopt;
  std::string wanted = *folder;
  for (const std::string& segment : path) {
    if (segment.starts_with('.') || segment.contains('/') || segment.contains('\\')) return std::nullopt;
    if (!segment.empty()) wanted += "/" + segment;
  }
  const auto inside = [&](const std::string& candidate) -> std::optional<std::string> {
    auto real = real_path(candidate);
    if (!real || !real->starts_with(*folder + "/") || !is_file(*real)) return std::nullopt;
    return real;
  };
  if (auto file = inside(is_folder(wanted) ? wanted + "/index.html" : wanted)) return file;
  const bool page = path.empty() || !path.back().contains('.');
  return page ? inside(*folder + "/index.html") : std::nullopt;
}

}  // namespace bezel
