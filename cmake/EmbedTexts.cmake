# Writes a C++ source with the contents of files as texts. Run at build time:
#
#   cmake -DOUTPUT=FILE.cpp -DTEMPLATE=FILE.cpp.in -DTEXTS=name=path,path|name=path -P EmbedTexts.cmake
#
# Each @name@ of the template becomes a literal with the files named, one after the other; a name
# without files becomes "".
foreach(argument OUTPUT TEMPLATE TEXTS)
  if(NOT DEFINED ${argument})
    message(FATAL_ERROR "EmbedTexts.cmake needs -D${argument}=…")
  endif()
endforeach()

string(REPLACE "|" ";" entries "${TEXTS}")
foreach(entry IN LISTS entries)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${entry}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  set(${name} "")
  foreach(file IN LISTS files)
    file(READ "${file}" content)
    string(FIND "${content}" ")forge_text\"" ends_early)
    if(NOT ends_early EQUAL -1)
      message(FATAL_ERROR "${file} contains )forge_text\", which ends a literal")
    endif()
    string(APPEND ${name} "${content}")
  endforeach()
  set(${name} "R\"forge_text(${${name}})forge_text\"")
endforeach()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
file(TOUCH "${OUTPUT}")  # configure_file leaves an equal file as old as it is
