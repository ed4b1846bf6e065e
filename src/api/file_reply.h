// Files over HTTP: parts of large ones, and a folder of small ones. Native only.
#pragma once
#include <string>

#include "api/http_server.h"

namespace bezel {

struct FileAnswer {
  std::string path;
  std::string type;
  std::string etag;  // quoted; empty: made of the time of its last change and its size
};
// GET and HEAD, with ranges and conditions. Never holds more than a piece of the file.
void send_file(const HttpRequest& request, HttpReply& reply, const FileAnswer& file);

std::string media_type(const std::string& file_name);

// The file of `root` that the path of a request means; a folder means its index.html, as does a path that
// looks like a page of the app, for the app finds its own pages. Hidden files, and whatever leads out of the
// folder, do not exist.
std::optional<std::string> find_static_file(const std::string& root, const std::vector<std::string>& path);

}  // namespace bezel
