# Most of the time of a clean build goes into headers that every file reads again. With
# FORGE_UNITY_BUILD, files of one folder are compiled together, up to so many bytes at a time: a clean
# build takes less than half as long. Without it, as in the preset debug, each is compiled alone.
option(FORGE_UNITY_BUILD "Compile the files of a folder together" OFF)
set(FORGE_UNITY_BYTES 70000 CACHE STRING "Source text of a folder that is compiled together at most")

# forge_unity(TARGET): call it after the last source of the target and in the folder that defines it.
# Generated files stay alone.
function(forge_unity target)
  if(NOT FORGE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(folder "")
  set(bytes 0)
  set(number 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    if(NOT source MATCHES "\\.cpp$" OR NOT EXISTS ${source} OR source MATCHES "^${CMAKE_BINARY_DIR}/")
      continue()
    endif()
    file(SIZE ${source} size)
    cmake_path(GET source PARENT_PATH parent)
    math(EXPR bytes "${bytes} + ${size}")
    if(NOT parent STREQUAL folder OR bytes GREATER FORGE_UNITY_BYTES)
      set(folder ${parent})
      set(bytes ${size})
      math(EXPR number "${number} + 1")
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
