# hc_closed(TARGET LIBRARY...): this target may not include the headers of these libraries. They lie in /usr/include, which
# every target sees: it finds an #error of the same name first.
function(hc_closed target)
  foreach(header ${ARGN})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/closed/${header})
  endforeach()
endfunction()

# hc_library(NAME folder-relative sources...): a static library whose private
# include folder is its own; what it lets others include is said by PUBLIC_DIR,
# and which of uv, zmq and jansson it may include by MAY.
function(hc_library name)
  cmake_parse_arguments(A "" "" "SOURCES;PUBLIC_DIRS;PRIVATE_DIRS;LINK;MAY" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_include_directories(${name} PUBLIC ${A_PUBLIC_DIRS} PRIVATE ${A_PRIVATE_DIRS})
  target_link_libraries(${name} PRIVATE hc_flags PUBLIC ${A_LINK})
  set(closed uv zmq jansson)
  list(REMOVE_ITEM closed ${A_MAY})
  hc_closed(${name} ${closed})
endfunction()

# hc_unit_tests(folder libs...): one cmocka program per tests/unit/<folder>/test_*.c
function(hc_unit_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${folder}/test_*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_compile_definitions(${name} PRIVATE HC_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE hc_flags ${ARGN} PkgConfig::CMOCKA)
    add_test(NAME ${folder}/${name} COMMAND ${name})
    set_tests_properties(${folder}/${name} PROPERTIES TIMEOUT 300)
  endforeach()
endfunction()

# hc_fuzzers(folder libs...): one harness per tests/fuzz/<folder>/fuzz_*.c. With
# HOLDCELL_FUZZ a libFuzzer program; else a replay of its corpus, run by ctest.
function(hc_fuzzers folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/${folder}/fuzz_*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "fuzz_" "" subject ${name})
    if(HOLDCELL_FUZZ)
      add_executable(${name} ${source})
      if(NOT TARGET fuzzers)
        add_custom_target(fuzzers) # all of them, and nothing else
      endif()
      add_dependencies(fuzzers ${name})
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
      if(NOT TARGET hc_replay)
        add_library(hc_replay OBJECT ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
        target_link_libraries(hc_replay PRIVATE hc_flags)
      endif()
      add_executable(${name} ${source})
      target_link_libraries(${name} PRIVATE hc_replay)
      add_test(NAME fuzz/${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${subject})
      set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT 300)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_libraries(${name} PRIVATE hc_flags ${ARGN})
  endforeach()
endfunction()
