# Gives the target forge_torch: LibTorch with its headers as SYSTEM includes.
# Debian's package is found by itself; for another, -DCMAKE_PREFIX_PATH=/path/to/libtorch or
# -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')".
# Torch's own files turn CMAKE_CUDA_ARCHITECTURES off: what was asked for is kept.
set(FORGE_CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}" CACHE STRING
  "GPU architectures to compile for, such as 80;90; empty: that of this machine's GPU")
find_package(Torch REQUIRED)

if("${TORCH_CXX_FLAGS}" MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR
    "This LibTorch (${TORCH_INSTALL_PREFIX}) was built with the C++ ABI from before C++11 "
    "(_GLIBCXX_USE_CXX11_ABI=0): its std::string is another type than that of every library in this "
    "program, so nothing would link. Take the zip named 'libtorch-cxx11-abi-…' or a LibTorch from 2.6 on.")
endif()

add_library(forge_torch INTERFACE)
target_include_directories(forge_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(forge_torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(forge_torch INTERFACE ${torch_flags})
# at::parallel_for is a template of Torch's headers: compiled without OpenMP it runs on one thread.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_link_libraries(forge_torch INTERFACE OpenMP::OpenMP_CXX)
# Python's libtorch exports a copy of parts of std::filesystem that crashes when it is called.
# With the C++ library first in a program's list, the loader takes those functions from there. Named
# by its file, as -lstdc++ may be a static one, from which nothing is taken at that place.
execute_process(
  COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so
  OUTPUT_VARIABLE cxx_library OUTPUT_STRIP_TRAILING_WHITESPACE)
if(IS_ABSOLUTE "${cxx_library}")  # a compiler may have a static one alone
  target_link_options(forge_torch INTERFACE -Wl,--push-state,--no-as-needed,${cxx_library},--pop-state)
endif()
# From Torch 2.13 on its headers ask for C++20; targets that include them take what they ask for.
if(Torch_VERSION VERSION_GREATER_EQUAL 2.13)
  set(FORGE_TORCH_STANDARD 20)
else()
  set(FORGE_TORCH_STANDARD 17)
endif()
message(STATUS "LibTorch ${Torch_VERSION}: ${TORCH_INSTALL_PREFIX}")
