# Installs the library, its headers, a CMake package and a pkg-config file. All of it may be moved afterwards.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sorot)
install(TARGETS sorot EXPORT sorot-targets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/sorot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT sorot-targets NAMESPACE sorot:: DESTINATION ${package_dir})

# As with the SOVERSION: before 1.0 a minor version may break its users.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sorot-config-version.cmake COMPATIBILITY ${compatibility})
configure_package_config_file(cpu/sorot-config.cmake.in ${PROJECT_BINARY_DIR}/sorot-config.cmake
  INSTALL_DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/sorot-config.cmake ${PROJECT_BINARY_DIR}/sorot-config-version.cmake
  DESTINATION ${package_dir})

# APPEND keeps an absolute CMAKE_INSTALL_LIBDIR as it is, and puts a relative one behind the prefix.
set(pc_libdir "\${prefix}")
set(pc_includedir "\${prefix}")
cmake_path(APPEND pc_libdir ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
configure_file(cpu/sorot.pc.in ${PROJECT_BINARY_DIR}/sorot.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sorot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
