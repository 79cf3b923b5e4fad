# The installed tree. Its shape is fixed below the prefix, because the program finds everything from
# its own path: ../libexec/forge/ for workers, ../share/forge/ for the workspace that it comes with.
install(TARGETS forge RUNTIME DESTINATION bin)
install(DIRECTORY projects templates forge_workspace DESTINATION share/forge
        PATTERN runs EXCLUDE
        PATTERN "RESULTS.*" EXCLUDE
        PATTERN "*.tmp-*" EXCLUDE
        PATTERN ".local" EXCLUDE)

# Backends that are programs of their own, found beside the templates.
install(DIRECTORY backends/bigram backends/pytorch DESTINATION share/forge/backends
        USE_SOURCE_PERMISSIONS
        PATTERN "__pycache__" EXCLUDE)

# For `import forge` in Python: the folder that docs/PYTHON.md puts on the path.
install(FILES app/python/forge.py DESTINATION share/forge/python)

# The manual and the shells' completions come from the program itself, as --help does.
install(CODE [[
  function(write_from_program file)
    set(path "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${file}")
    get_filename_component(folder "${path}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/forge" ${ARGN}
                    OUTPUT_FILE "${path}" RESULT_VARIABLE failed)
    if(failed)
      message(WARNING "could not write ${path}")
    endif()
  endfunction()
  write_from_program(share/man/man1/forge.1 man)
  write_from_program(share/bash-completion/completions/forge completion bash)
  write_from_program(share/zsh/site-functions/_forge completion zsh)
  write_from_program(share/fish/vendor_completions.d/forge.fish completion fish)
]])
install(FILES LICENSE DESTINATION share/doc/forge)

if(FORGE_WITH_TORCH)
  install(TARGETS forge-worker-libtorch RUNTIME DESTINATION libexec/forge)
  # A LibTorch outside the system's folders must still be found.
  set_target_properties(forge-worker-libtorch PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
