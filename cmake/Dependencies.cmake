# Every library that forge_core uses is a Debian package; scripts/setup installs them.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS filesystem)
find_package(ZLIB REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(LibArchive 3.6 REQUIRED)

# Libraries whose packages bring no CMake files.
function(forge_find_library target header library)
  find_path(${target}_INCLUDE_DIR ${header} REQUIRED)
  find_library(${target}_LIBRARY ${library} REQUIRED)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE_DIR})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()
forge_find_library(forge_xxhash xxhash.h xxhash)
forge_find_library(forge_utf8proc utf8proc.h utf8proc)
forge_find_library(forge_sentencepiece sentencepiece_processor.h sentencepiece)
forge_find_library(forge_zstd zstd.h zstd)

if(NOT TARGET yaml-cpp::yaml-cpp)  # before 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(FORGE_WITH_TORCH)
  include(LibTorch)
endif()
