# The operations on a GPU: kernels, which know no Torch and so compile in seconds, and the tensors'
# side of each operation.
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

add_library(forge_cuda_kernels STATIC
  ops/adamw/cuda.cu ops/common/cuda.cu ops/embedding/cuda.cu ops/linear_cross_entropy/cuda.cu
  ops/norm_linear/cuda.cu ops/self_attention/cuda.cu ops/swiglu_linear/cuda.cu)
target_include_directories(forge_cuda_kernels PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(forge_cuda_kernels PRIVATE -O3 --expt-relaxed-constexpr --expt-extended-lambda)
if(FORGE_CUDA_ARCHITECTURES)
  set(architectures ${FORGE_CUDA_ARCHITECTURES})
else()
  set(architectures native)
endif()
set_target_properties(forge_cuda_kernels PROPERTIES
  CUDA_STANDARD 17 POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES "${architectures}")

target_sources(forge_ops PRIVATE
  ops/adamw/cuda.cpp ops/causal_attention/cuda.cpp ops/common/gemm_cuda.cpp ops/embedding/cuda.cpp
  ops/linear_cross_entropy/cuda.cpp ops/norm_linear/cuda.cpp ops/self_attention/cuda.cpp
  ops/swiglu_linear/cuda.cpp)
target_compile_definitions(forge_ops PUBLIC FORGE_WITH_CUDA)
target_link_libraries(forge_ops PUBLIC forge_cuda_kernels CUDA::cublasLt)
