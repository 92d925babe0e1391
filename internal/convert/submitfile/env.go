package submitfile

import "time"

// Env is what a submit file may ask of the machine where it is read. A function that is nil refuses.
type Env struct {
	// Variable is what $ENV(NAME) stands for.
	Variable func(name string) (value string, set bool)

	// Now is when the file is submitted: $(SUBMIT_TIME), $(YEAR), $(MONTH) and $(DAY).
	Now time.Time

	// ReadFile returns an included file or a table; an error that is fs.ErrNotExist says that there is none.
	ReadFile func(path string) ([]byte, error)

	// Glob lists the files and directories that a shell's pattern matches, sorted, and directories with a / at their
	// end.
	Glob func(pattern string) ([]string, error)

	// Run returns what a command prints: of `queue ... from COMMAND |` and `include command : COMMAND`.
	Run func(command string) ([]byte, error)

	// Before and After are statements such as `x = 1`, which count as if they stood at the beginning of the file, and
	// before its first queue statement: those of a DAG's VARS.
	Before, After []string
}
