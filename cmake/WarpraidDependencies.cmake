# Third-party libraries, all from the distribution. Each is named once, here.
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(LIBURING REQUIRED IMPORTED_TARGET liburing)
# Debian compiles cpp-httplib with OpenSSL, zlib and Brotli: its own flags must be used, or the class
# layout differs from the library's and the first request crashes.
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
find_package(OpenSSL REQUIRED)
find_library(ISAL_LIBRARY isal REQUIRED)
find_path(ISAL_INCLUDE_DIR isa-l.h REQUIRED)
add_library(warpraid_isal INTERFACE)
target_include_directories(warpraid_isal SYSTEM INTERFACE ${ISAL_INCLUDE_DIR})
target_link_libraries(warpraid_isal INTERFACE ${ISAL_LIBRARY})

if(WARPRAID_TESTS)
    find_package(GTest REQUIRED)
    include(GoogleTest)
    find_package(rapidcheck REQUIRED)
endif()
