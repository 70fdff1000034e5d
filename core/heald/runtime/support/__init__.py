"""Support: services of the process and the machine that the rooms above need.

The room knows no tensor, graph, device or config. It imports `errors` alone. No module here keeps state of a run.

`fork_safety`: Owners of locks, which get new locks in a forked child.
`plugin_guard`, `kernel_errors`: The places where exceptions of plugin code become typed errors: imports and hooks;
    kernels. `fault_place`, `remedy`: The line of a plugin that raised, and the user's remedy.
`install`: Every command that installs a distribution.
`time_limit`: The end of waiting for a plugin's code.
`unraisable`: The report of exceptions that no caller can receive.
`records`: Classes of fields that cost little to make at import. `field_classes`: The makers of their methods.
`gc_pause`: No garbage collection while a graph is read and prepared.
`mapped_file`: Bytes of files, read or mapped, and the detection of files that change.
`aligned_array`: Aligned uint8 arrays; arrays that kernels may read in place.
`available_memory`, `memory_size`: Memory that the process may still take; limits written as text.
`user_files`, `disk_cache`: The user's folders and the privacy of files in them; bytes kept for later processes.
`file_path`, `working_folder`: Paths as users give them; the working folder on sys.path.
`file_kinds`: The table of files that are no model, each with its way out.
`notebook_table`, `tensor_picture`: Tables of HTML for notebooks; tensors as PNG files.
`archive`: Archives of strangers, unpacked within bounds.
`input_file`: The errors of files that are read. `lazy_exports`: Names that a package imports when they are first used.
`whole_file`, `disk`: Files and folders that appear once they are complete, and survive kills and power cuts; the calls
    of the system that change them.
"""

# Not even `typing` is imported: the commands import this room before the working folder leaves sys.path.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import available_memory as available_memory
    from . import file_kinds as file_kinds
    from . import file_path as file_path
    from . import input_file as input_file
    from . import install as install
    from . import kernel_errors as kernel_errors
    from . import lazy_exports as lazy_exports
    from . import mapped_file as mapped_file
    from . import notebook_table as notebook_table
    from . import tensor_picture as tensor_picture
    from . import whole_file as whole_file
