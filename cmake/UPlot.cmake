# uPlot draws the curves of `forge report`; scripts/setup fetches it into the user's cache folder.
# Sets FORGE_UPLOT_FOUND. Only the very files of that version are taken: they go into the program.
set(uplot_cache "$ENV{FORGE_CACHE_DIR}")
if(NOT uplot_cache)
  set(uplot_cache "$ENV{XDG_CACHE_HOME}/forge")
  if("$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(uplot_cache "$ENV{HOME}/.cache/forge")
  endif()
endif()
set(FORGE_UPLOT_DIR "${uplot_cache}/uplot-1.6.32" CACHE PATH
  "Folder with uPlot.iife.min.js, uPlot.min.css and LICENSE of uPlot 1.6.32")

set(FORGE_UPLOT_FOUND ON)
foreach(entry
    "uPlot.iife.min.js=19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
    "uPlot.min.css=df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
    "LICENSE=8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd")
  string(REGEX MATCH "^(.*)=(.*)$" matched "${entry}")
  set(file "${FORGE_UPLOT_DIR}/${CMAKE_MATCH_1}")
  set(wanted "${CMAKE_MATCH_2}")
  set(found "")
  if(EXISTS "${file}")
    file(SHA256 "${file}" found)
    if(NOT found STREQUAL wanted)
      message(WARNING "${file} is not that of uPlot 1.6.32 and is not used")
    endif()
  endif()
  if(NOT found STREQUAL wanted)
    set(FORGE_UPLOT_FOUND OFF)
  endif()
endforeach()
if(NOT FORGE_UPLOT_FOUND)
  message(STATUS "uPlot was not found: `forge report` will say how to add it")
endif()
