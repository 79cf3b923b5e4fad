# The operations on a GPU: kernels, which know no Torch and so compile in seconds, and the tensors'
# side of each operation.
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ops/*.cu)
add_library(forge_cuda_kernels STATIC ${kernels})
target_include_directories(forge_cuda_kernels PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(forge_cuda_kernels PRIVATE -O3 --expt-relaxed-constexpr --expt-extended-lambda)
if(FORGE_CUDA_ARCHITECTURES)
  set(architectures ${FORGE_CUDA_ARCHITECTURES})
else()
  set(architectures native)
endif()
set_target_properties(forge_cuda_kernels PROPERTIES
  CUDA_STANDARD 17 POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES "${architectures}")

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ops/*cuda.cpp)
target_sources(forge_ops PRIVATE ${sources})
target_compile_definitions(forge_ops PUBLIC FORGE_WITH_CUDA)
target_link_libraries(forge_ops PUBLIC forge_cuda_kernels CUDA::cublasLt)
