#include "core/templating/posix_path.h"

#include "core/base/text.h"

namespace forge::templating {

std::string join_path(const std::vector<std::string>& parts) {
  std::string path = parts.empty() ? "" : parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (starts_with(parts[i], "/")) {
      path = parts[i];
    } else if (path.empty() || ends_with(path, "/")) {
      path += parts[i];
    } else {
      path += "/" + parts[i];
    }
  }
  return path;
}

std::string normalize_path(const std::string& path) {
  if (path.empty()) return ".";
  // POSIX leaves it open what exactly two leading slashes mean, so they stay.
  const bool two_slashes = starts_with(path, "//") && !starts_with(path, "///");
  const std::string root = two_slashes ? "//" : starts_with(path, "/") ? "/" : "";
  std::vector<std::string> kept;
  for (std::string& part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != ".." || (root.empty() && kept.empty()) || (!kept.empty() && kept.back() == "..")) {
      kept.push_back(std::move(part));
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  const std::string normalized = root + join(kept, "/");
  return normalized.empty() ? "." : normalized;
}

std::string absolute_path(const std::string& path, const std::string& working_directory) {
  return normalize_path(join_path({working_directory, path}));
}

std::string relative_path(const std::string& path,
                          const std::string& start,
                          const std::string& working_directory) {
  const auto parts_of = [&](const std::string& text) {
    std::vector<std::string> parts;
    for (std::string& part : split(absolute_path(text, working_directory), '/')) {
      if (!part.empty()) parts.push_back(std::move(part));
    }
    return parts;
  };
  const std::vector<std::string> from = parts_of(start), to = parts_of(path);
  size_t common = 0;
  while (common < from.size() && common < to.size() && from[common] == to[common]) ++common;
  std::vector<std::string> parts(from.size() - common, "..");
  parts.insert(parts.end(), to.begin() + static_cast<std::ptrdiff_t>(common), to.end());
  return parts.empty() ? "." : join(parts, "/");
}

std::string directory_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  std::string head = path.substr(0, slash + 1);
  const size_t last = head.find_last_not_of('/');
  if (last != std::string::npos) head.resize(last + 1);
  return head;
}

std::string base_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::pair<std::string, std::string> split_extension(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = path.rfind('.');
  const bool has_dot = dot != std::string::npos && dot >= name;
  const size_t first = path.find_first_not_of('.', name);
  if (!has_dot || first == std::string::npos || first > dot) return {path, ""};
  return {path.substr(0, dot), path.substr(dot)};
}

}  // namespace forge::templating
