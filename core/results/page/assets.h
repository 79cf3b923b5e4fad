#pragma once

#include <string_view>

namespace forge::page {

/// The files that a page is made of, as they were when the program was built.
struct Assets {
  std::string_view page;    ///< template.html
  std::string_view style;   ///< page.css
  std::string_view script;  ///< script/*.js, one after the other
  std::string_view plot_script;
  std::string_view plot_style;
  std::string_view plot_licence;  ///< all three "" in a build without uPlot
};

/// Those in the program; CMake writes the definition.
Assets embedded_assets();

}  // namespace forge::page
