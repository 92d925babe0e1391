package submitfile_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// Whatever a file holds, it is read or refused, in bounded time and memory, and its jobs can be looked at.
func FuzzFile(f *testing.F) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := submitfile.Parse("job.sub", text)
		if err != nil {
			return
		}
		files := fstest.MapFS{"table": {Data: text}, "dir/a.txt": {}, "b.txt": {}}
		looked := 0 // at values: those with macros in circles take a while each
		for _, cluster := range file.Expand(env(files)).Clusters {
			for _, queue := range cluster.Queues {
				for i := 0; i < queue.Len() && looked < 20; i += max(1, queue.Len()/2) {
					job := queue.Job(i)
					for name := range job.Commands() {
						looked++
						if value, _, err := job.Value(name); err == nil {
							_, _ = submitfile.Arguments(value)
							_, _ = submitfile.Environment(value)
						}
					}
				}
			}
		}
	})
}
