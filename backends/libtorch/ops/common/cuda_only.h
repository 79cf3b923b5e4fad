#pragma once

/// Marks a function that only a build with CUDA defines. Other builds never call it, because
/// has_cuda_kernel() is false there; as a weak symbol it may stay undefined.
#ifdef FORGE_WITH_CUDA
#define FORGE_CUDA_ONLY
#else
#define FORGE_CUDA_ONLY __attribute__((weak))
#endif
