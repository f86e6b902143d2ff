# How every part of Warpraid is declared. No global flags: one interface target carries them.
find_package(Threads REQUIRED)

add_library(warpraid_options INTERFACE)
target_include_directories(warpraid_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(warpraid_options INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
    -fno-omit-frame-pointer $<$<BOOL:${WARPRAID_WERROR}>:-Werror>)
target_link_libraries(warpraid_options INTERFACE Threads::Threads)
if(WARPRAID_SANITIZE STREQUAL "address")
    target_compile_options(warpraid_options INTERFACE -fsanitize=address,undefined
        -fno-sanitize-recover=all)
    target_link_options(warpraid_options INTERFACE -fsanitize=address,undefined)
elseif(WARPRAID_SANITIZE STREQUAL "thread")
    target_compile_options(warpraid_options INTERFACE -fsanitize=thread)
    target_link_options(warpraid_options INTERFACE -fsanitize=thread)
elseif(NOT WARPRAID_SANITIZE STREQUAL "")
    message(FATAL_ERROR "WARPRAID_SANITIZE must be empty, 'address' or 'thread'")
endif()
if(WARPRAID_VERIFY)
    target_compile_definitions(warpraid_options INTERFACE WARPRAID_VERIFY_ENABLED=1)
endif()

# warpraid_library(<folder> SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...])
# One folder of src/ is one target warpraid_<folder> with the alias warpraid::<folder>. With
# WARPRAID_HEADER_CHECK every header of the folder is compiled on its own as well (target
# warpraid_<folder>_headers), so that each includes what it needs.
function(warpraid_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
    add_library(warpraid_${name} STATIC ${ARG_SOURCES})
    add_library(warpraid::${name} ALIAS warpraid_${name})
    target_link_libraries(warpraid_${name} PUBLIC warpraid_options ${ARG_DEPENDS}
        PRIVATE ${ARG_PRIVATE_DEPENDS})
    if(WARPRAID_HEADER_CHECK)
        warpraid_check_headers(${name} "${ARG_DEPENDS};${ARG_PRIVATE_DEPENDS}")
    endif()
endfunction()

function(warpraid_check_headers name depends)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
    # Helpers of tests include GoogleTest, which a build without tests does not need.
    list(FILTER headers EXCLUDE REGEX "_test_support\\.h$")
    set(header_units)
    foreach(header IN LISTS headers)
        get_filename_component(stem ${header} NAME_WE)
        set(unit ${CMAKE_BINARY_DIR}/header_units/${name}/${stem}_header.cpp)
        file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/src ${header})
        file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${relative}\"\n#include \"${relative}\"\n")
        list(APPEND header_units ${unit})
    endforeach()
    if(header_units)
        add_library(warpraid_${name}_headers OBJECT ${header_units})
        target_compile_options(warpraid_${name}_headers PRIVATE -O0 -g0)
        target_link_libraries(warpraid_${name}_headers PRIVATE warpraid_options ${depends})
    endif()
endfunction()

# warpraid_test(<name> SOURCES ... DEPENDS ... LABEL <label> [TIMEOUT <seconds>])
# A GoogleTest program; each of its tests becomes one CTest case under the label.
function(warpraid_test name)
    if(NOT WARPRAID_TESTS)
        return()
    endif()
    cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 300)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    # Lines are what a failed test needs of debug information; all of it costs a quarter of the time
    # that the compiler takes for these sources.
    target_compile_options(${name} PRIVATE -g1)
    target_link_libraries(${name} PRIVATE warpraid_options ${ARG_DEPENDS} GTest::gtest
        GTest::gmock GTest::gtest_main)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()
