# Most of the time of a clean build goes into headers that every file reads again. With
# FORGE_UNITY_BUILD, files of one room are compiled together, so many at a time: a clean build takes
# less than half as long. Without it, as in the preset debug, each is compiled alone.
# Files are counted, not measured: what is compiled together must not change with what is in them, or a
# build folder that was configured before an edit would compile other units than a clean checkout.
option(FORGE_UNITY_BUILD "Compile the files of a room together" OFF)
set(FORGE_UNITY_FILES 12 CACHE STRING "Most files of a room that are compiled together")

# forge_unity(TARGET [APART REGEX]): call it after the last source of the target and in the folder that
# defines it. Generated files stay alone. Files whose path matches REGEX are compiled with each other
# only: a program that links a library gets all of a unit as soon as it needs one of its files.
function(forge_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 argument "" "APART" "")
  if(NOT FORGE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(room "")
  set(files 0)
  set(number 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    if(NOT source MATCHES "\\.cpp$" OR NOT EXISTS ${source} OR source MATCHES "^${CMAKE_BINARY_DIR}/")
      continue()
    endif()
    if(argument_APART AND source MATCHES "${argument_APART}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_apart)
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    string(REGEX MATCH "^(tests/)?(app|[^/]+/[^/]+|[^/]+)" source_room ${folder})
    math(EXPR files "${files} + 1")
    if(NOT source_room STREQUAL room OR files GREATER FORGE_UNITY_FILES)
      set(room ${source_room})
      set(files 1)
      math(EXPR number "${number} + 1")
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
