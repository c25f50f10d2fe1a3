# hc_embed(TARGET FILE SYMBOL): the bytes of FILE become `const unsigned char SYMBOL[]` and
# `const size_t SYMBOL_size` in TARGET. Script mode does the writing, at build time.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${IN} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REPEAT "0x..," 20 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  file(WRITE ${OUT} "/* Made from ${NAME}. */\n#include <stddef.h>\n\nextern const unsigned char ${SYMBOL}[];\n"
                    "extern const size_t ${SYMBOL}_size;\nconst unsigned char ${SYMBOL}[] = {\n${bytes}\n};\n"
                    "const size_t ${SYMBOL}_size = ${size};\n")
  return()
endif()

set(HC_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(hc_embed target file symbol)
  set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
  get_filename_component(name ${file} NAME)
  add_custom_command(OUTPUT ${out} DEPENDS ${file} ${HC_EMBED_SCRIPT} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DNAME=${name} -DSYMBOL=${symbol} -P ${HC_EMBED_SCRIPT})
  target_sources(${target} PRIVATE ${out})
endfunction()
