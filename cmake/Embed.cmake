# forge_embed(TARGET TEMPLATE.cpp.in name=file[,file…] …): TARGET gets a C++ source, made when building,
# in which each @name@ of the template is a literal with the contents of the files named, one after the
# other; a name without files becomes "". Paths are relative to the current source folder or absolute.
function(forge_embed target template)
  set(files "")
  set(texts "")
  foreach(entry IN LISTS ARGN)
    string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${entry}")
    set(name ${CMAKE_MATCH_1})
    string(REPLACE "," ";" paths "${CMAKE_MATCH_2}")
    list(TRANSFORM paths PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
    list(APPEND files ${paths})
    string(REPLACE ";" "," paths "${paths}")
    list(APPEND texts "${name}=${paths}")
  endforeach()
  string(REPLACE ";" "|" texts "${texts}")
  get_filename_component(stem ${template} NAME)
  string(REGEX REPLACE "\\.in$" "" stem ${stem})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${stem})
  set(template ${CMAKE_CURRENT_SOURCE_DIR}/${template})
  # With other files the command is another one, which Ninja sees; other generators see this file.
  file(CONFIGURE OUTPUT ${output}.texts CONTENT "${texts}")
  set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DTEMPLATE=${template} -DTEXTS=${texts} -P ${script}
    DEPENDS ${files} ${template} ${script} ${output}.texts
    VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
