# The installed tree. Its shape is fixed below the prefix, because the program finds everything from
# its own path: ../libexec/forge/ for workers, ../share/forge/ for the workspace that it comes with.
install(TARGETS forge RUNTIME DESTINATION bin)
install(DIRECTORY projects templates forge_workspace DESTINATION share/forge
        PATTERN runs EXCLUDE
        PATTERN RESULTS.md EXCLUDE
        PATTERN "*.tmp-*" EXCLUDE)
install(FILES LICENSE DESTINATION share/doc/forge)

if(FORGE_WITH_TORCH)
  install(TARGETS forge-worker-libtorch RUNTIME DESTINATION libexec/forge)
  # A LibTorch outside the system's folders must still be found.
  set_target_properties(forge-worker-libtorch PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
