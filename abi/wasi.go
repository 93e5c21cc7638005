package abi

// WASIImports lists the functions of WASIModule that a module may import, in order of name: WASI preview 1 as TinyGo,
// standard Go and Rust use it. Any other import from there is refused at load. ABI.md says what each answers.
func WASIImports() []string {
	return []string{
		"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "environ_get", "environ_sizes_get",
		"fd_advise", "fd_allocate", "fd_close", "fd_datasync", "fd_fdstat_get", "fd_fdstat_set_flags",
		"fd_fdstat_set_rights",
		"fd_filestat_get", "fd_filestat_set_size", "fd_filestat_set_times", "fd_pread", "fd_prestat_dir_name",
		"fd_prestat_get",
		"fd_pwrite", "fd_read", "fd_readdir", "fd_renumber", "fd_seek", "fd_sync", "fd_tell", "fd_write",
		"path_create_directory", "path_filestat_get", "path_filestat_set_times", "path_link", "path_open",
		"path_readlink",
		"path_remove_directory", "path_rename", "path_symlink", "path_unlink_file",
		"poll_oneoff", "proc_exit", "random_get", "sched_yield",
		"sock_accept", "sock_recv", "sock_send", "sock_shutdown",
	}
}
