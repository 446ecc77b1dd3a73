# cmake -DNAME=symbol -DOUTPUT=file.c -DINPUTS=a|b|... -P embed.cmake
# Writes the inputs, one after another, as the C array `symbol` with its size `symbol_size`.
string(REPLACE "|" ";" INPUTS "${INPUTS}")
set(hex "")
foreach(input IN LISTS INPUTS)
  file(READ ${input} part HEX)
  string(APPEND hex "${part}")
endforeach()
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE ${OUTPUT} "#include <stddef.h>\nextern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_size;\n"
                     "const unsigned char ${NAME}[] = {\n${hex}};\nconst size_t ${NAME}_size = ${size};\n")
