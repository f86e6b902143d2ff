# The `cuda` preset reserves the place of the GPU coder. There is no CUDA code yet, so nothing is
# compiled with nvcc: the preset says what it found and builds the CPU product.
set(WARPRAID_CUDA OFF CACHE BOOL "Build the GPU coder (there is none yet: parity runs on the CPU)")
if(WARPRAID_CUDA)
    find_program(WARPRAID_NVCC nvcc HINTS $ENV{CUDA_PATH} /usr/local/cuda PATH_SUFFIXES bin)
    if(WARPRAID_NVCC)
        execute_process(COMMAND ${WARPRAID_NVCC} --version OUTPUT_VARIABLE nvcc_version)
        string(REGEX MATCH "release [0-9.]+" nvcc_version "${nvcc_version}")
        message(STATUS "CUDA compiler: ${WARPRAID_NVCC} (${nvcc_version})")
    else()
        message(STATUS "CUDA compiler: none found")
    endif()
    message(WARNING "Warpraid has no CUDA code yet. This build is the CPU build: parity runs on the CPU "
        "whether a GPU is present or not.")
endif()
