package convert_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
	"htc.cern.ch/htcd/internal/target/pool"
)

// TestGolden converts job.sub of each archive, beside its other files, and compares the manifest and what is said of
// each line with `want`.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, path := range archives {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			files, want := fstest.MapFS{}, -1
			for i, f := range archive.Files {
				if f.Name == "want" {
					want = i
					continue
				}
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			require.GreaterOrEqual(t, want, 0)
			r, err := convert.Submit("job.sub", files["job.sub"].Data, env(files), convert.Options{})
			require.NoError(t, err)
			if len(r.HTCJobs) == 0 && asksForImage(r) {
				r, err = convert.Submit("job.sub", files["job.sub"].Data, env(files), convert.Options{Image: "centos"})
				require.NoError(t, err)
			}
			var got bytes.Buffer
			convert.WriteTable(&got, r.Lines, true)
			manifest, err := r.YAML()
			require.NoError(t, err)
			got.Write(manifest)
			if os.Getenv("UPDATE") != "" {
				archive.Files[want].Data = got.Bytes()
				require.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o600))
				return
			}
			require.Equal(t, string(archive.Files[want].Data), got.String())
			for _, job := range r.HTCJobs {
				accepted(t, job)
			}
		})
	}
}

func asksForImage(r convert.Result) bool {
	for _, l := range r.Lines {
		if strings.Contains(l.Words, "names no image") {
			return true
		}
	}
	return false
}

// accepted requires that htcd can make a submission of the HTCJob, at a site that allows all the attributes that it
// has.
func accepted(t *testing.T, job v1alpha1.HTCJob) {
	t.Helper()
	var allow []string
	for line := range strings.Lines(job.Spec.HTCOpts) {
		if name, _, is := strings.Cut(line, " = "); is && strings.HasPrefix(name, "+") {
			allow = append(allow, name)
		}
	}
	job.Namespace, job.UID = "ns", "u-1"
	points, err := site.InlineItems(&job)
	require.NoError(t, err)
	_, err = site.Site{
		Program:      "/usr/bin/htcd",
		AllowOptions: allow,
		AllowSchemes: []string{"https"},
	}.Render(
		&job,
		pool.Pool{},
		1,
		points,
	)
	require.NoError(t, err)
}

func env(files fstest.MapFS) convert.Env {
	e := convert.Env{Environ: []string{"USER=ada", "REEF_A=1", "REEF_B=2", "HOME=/home/ada"}}
	e.Variable = func(name string) (string, bool) { return "ada", name == "USER" }
	e.ReadFile = func(path string) ([]byte, error) { return fs.ReadFile(files, filepath.Clean(path)) }
	e.Glob = func(pattern string) ([]string, error) { return fs.Glob(files, pattern) }
	e.Size = func(path string) (int64, error) {
		info, err := fs.Stat(files, filepath.Clean(path))
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	e.List = func(path string) (all []string, dir bool, err error) {
		path = filepath.Clean(path)
		if info, err := fs.Stat(files, path); err != nil || !info.IsDir() {
			return nil, false, err
		}
		err = fs.WalkDir(files, path, func(at string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				all = append(all, strings.TrimPrefix(at, path+"/"))
			}
			return err
		})
		return all, true, err
	}
	return e
}

// lines are what is said of a submit file's lines, and the HTCJobs that it becomes.
func lines(t *testing.T, text string, o convert.Options, files fstest.MapFS) (string, convert.Result) {
	t.Helper()
	if files == nil {
		files = fstest.MapFS{}
	}
	files["p.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n")}
	r, err := convert.Submit("job.sub", []byte(text), env(files), o)
	require.NoError(t, err)
	var b strings.Builder
	convert.WriteTable(&b, r.Lines, true)
	return b.String(), r
}

func TestAFileThatNamesNoImageAsksForOne(t *testing.T) {
	said, r := lines(t, "executable = p.sh\nqueue\n", convert.Options{}, nil)
	require.Empty(t, r.HTCJobs)
	require.Contains(t, said, "job.sub:1: executable = p.sh\n    asks")
	require.Contains(t, said, "--image IMAGE")
}

func TestAnImageThatIsNoRegistrysIsAskedFor(t *testing.T) {
	said, r := lines(t, "container_image = osdf:///barn/hay.sif\nexecutable = p.sh\nqueue\n", convert.Options{}, nil)
	require.Empty(t, r.HTCJobs)
	require.Contains(
		t,
		said,
		"job.sub:1: container_image = osdf:///barn/hay.sif\n    asks: htcd fetches images from registries only",
	)
}

func TestTheRightsOfATokenAreThoseOfTheSecret(t *testing.T) {
	for _, line := range []string{"barn_oauth_permissions = read:/hay", "barn_oauth_resource_wheat = http://farm"} {
		said, _ := lines(t, "executable = p.sh\n"+line+"\nqueue\n", convert.Options{Image: "centos"}, nil)
		require.Contains(t, said, "job.sub:2: "+line+"\n    asks: the token comes from a Secret")
	}
}

func TestWhatMeansNothingHereIsMoot(t *testing.T) {
	for _, line := range []string{
		"load_profile = true", "docker_pull_policy = missing", "ulog_execute_attrs = Barn", "job_ad_information_attrs = Barn",
	} {
		said, r := lines(t, "executable = p.sh\n"+line+"\nqueue\n", convert.Options{Image: "centos"}, nil)
		require.Contains(t, said, "job.sub:2: "+line+"\n    moot: ")
		require.False(t, convert.Lost(r.Lines))
	}
}

func TestMacrosThatBeginAsCommandsDoAreMacros(t *testing.T) {
	for _, name := range []string{
		"batch_size", "docker_tag", "manifest_file", "s3_bucket", "remote_dir", "java_home", "cloud_zone", "vm_name",
		"cron_log", "noop_run", "starter_file", "interactive_mode",
	} {
		said, r := lines(t, name+" = 8\nexecutable = p.sh\narguments = $("+name+")\nqueue\n",
			convert.Options{Image: "centos"}, nil)
		require.Contains(t, said, "job.sub:1: "+name+" = 8\n    taken: a macro")
		require.Equal(t, []string{"8"}, r.HTCJobs[0].Spec.Script.Args)
	}
}

func TestWhatCannotBeConvertedIsNoManifest(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a grid job": {"universe = grid\nexecutable = p.sh\nqueue\n",
			"job.sub:1: universe = grid\n    cannot: htcd runs jobs of the vanilla"},
		"several jobs of several machines": {"universe = parallel\nmachine_count = 3\nexecutable = p.sh\nqueue 2\n",
			"cannot: an HTCJob of several machines is a single job"},
		"a job of too many machines": {"universe = parallel\nmachine_count = 257\nexecutable = p.sh\nqueue\n",
			`cannot: "257" is no number of machines from 1 to 256`},
		"no job": {"executable = p.sh\nqueue 0\n",
			"job.sub:2: queue 0\n    cannot: there is no queue statement that makes a job; instead: a number above 0; or the files"},
		"a queue of files that are not here": {"executable = p.sh\nrequest_cpus = 2\nqueue x matching (*.hay)\n",
			"job.sub:2: request_cpus = 2\n    moot: no job is known that has it"},
		"no executable": {"universe = docker\ndocker_image = barn\narguments = x\nqueue\n",
			"job.sub:3: arguments = x\n    cannot: there is no executable, and the image's own entry point is not run"},
		"a file for condor_submit -interactive": {"+IsBuildJob = true\nqueue\n", "; for condor_submit -interactive executable=/bin/sh"},
		"quotes of a word processor": {"executable = p.sh\n+Length = “short”\nqueue\n",
			"cannot: condor_submit refuses \"“short”\", which is no ClassAd expression"},
		"a comment behind an expression": {"executable = p.sh\nperiodic_remove = false # never\nqueue\n",
			"cannot: condor_submit refuses \"false # never\""},
		"a table without a name": {"executable = p.sh\nqueue x from $(table)\n",
			"job.sub:1: executable = p.sh\n    moot: no job is known that has it"},
		"a table whose name is to come": {"executable = p.sh\nqueue x from $(table)\n",
			`with its macros replaced it is "queue x from": NAME=VALUE on the command line gives one a value`},
		"what condor_submit refuses": {"executable = p.sh\nfoo\nqueue\n",
			"job.sub:2: foo\n    cannot: expected COMMAND = VALUE"},
		"a program's output": {"executable = p.sh\nqueue x from seq 3 |\n",
			"job.sub:2: queue x from seq 3 |\n    cannot: what the command"},
		"arguments that are none": {"executable = p.sh\narguments = \"a\nqueue\n",
			"cannot: the double quote at the beginning is not closed"},
		"a random number": {"executable = p.sh\narguments = $RANDOM_INTEGER(1,2)\nqueue\n",
			"cannot: $RANDOM_INTEGER(1,2): the value would be drawn"},
		"too many jobs": {"executable = p.sh\nqueue 100001\n", "cannot: an HTCJob of a submit file has at most 100000 jobs"},
		"too many jobs for anything": {"executable = p.sh\nqueue 2000000000\n",
			"cannot: expected at most 5000000 jobs in all"},
		"jobs that differ in all": {"executable = p.sh\nrequest_memory = $(Process)00\nqueue 60\n",
			"cannot: the jobs differ in what they request"},
		"a value of two lines": {"executable = p.sh\nx @=e\na$INT(Process)\nb\n@e\narguments = \"'$(x)'\"\nqueue 2\n", "cannot be a variable's"},
		"a table beyond a ConfigMap": {"executable = p.sh\narguments = $(x)" + strings.Repeat("y",
			40) + "$(Step)\nqueue 30000 x in (" + strings.Repeat("z", 40) + " b)\n", "a ConfigMap holds 1 MiB"},
		"a value of very many letters": {"executable = p.sh\narguments = $(x)\nqueue x in (" + strings.Repeat("z",
			5000) + " b)\n", "cannot be a variable's"},
	} {
		t.Run(name, func(t *testing.T) {
			said, r := lines(t, c.text, convert.Options{Image: "centos"}, nil)
			require.Empty(t, r.HTCJobs)
			require.Contains(t, said, c.want)
			require.True(t, convert.Lost(r.Lines))
		})
	}
}

func TestMailIsLostWhereItIsAskedFor(t *testing.T) {
	for asks, want := range map[string]string{
		"": "moot: no mail is sent", "notification = Never\n": "moot: no mail is sent",
		"notification = Error\n": "cannot: mail goes to the owner",
	} {
		said, _ := lines(t, asks+"executable = p.sh\nnotify_user = a@b\nqueue\n", convert.Options{Image: "centos"}, nil)
		require.Contains(t, said, "notify_user = a@b\n    "+want)
	}
}

func TestAMissingFileIsNamedAsInTheSubmitFile(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("list", nil, 0o600))
	r, err := convert.Submit("job.sub", []byte("universe = parallel\nmachine_count = 2\nexecutable = list/run\n"+
		"input = in.$(Node)\ntransfer_input_files = list/part\nqueue\n"),
		convert.Here(nil, false), convert.Options{Image: "a"})
	require.NoError(t, err)
	var said bytes.Buffer
	convert.WriteTable(&said, r.Lines, true)
	const instead = "instead: the file, at the place where the conversion runs"
	require.Contains(t, said.String(), "cannot: there is no list/run; "+instead+"; transfer_executable = false if")
	require.Contains(t, said.String(), "cannot: there is no in.$(Node); "+instead)
	require.Contains(t, said.String(), "cannot: there is no list/part; "+instead)
}

func TestWhatIsLostIsSaid(t *testing.T) {
	large := fstest.MapFS{"big": {Data: make([]byte, 1<<20+1)}}
	for name, c := range map[string]struct{ text, want string }{
		"a large file": {"transfer_input_files = big",
			"cannot: big has 1048577 bytes, and a ConfigMap holds 1 MiB; instead: push it"},
		"a file that is not there":  {"transfer_input_files = none", "cannot: there is no none"},
		"all variables":             {"getenv = true", "cannot: all variables of a shell"},
		"a checkpoint of anything":  {"checkpoint_exit_code = 85", "cannot: a checkpoint has names; instead: transfer_checkpoint_files = FILE"},
		"a failure as a checkpoint": {"checkpoint_exit_code = 1", "cannot: a checkpoint cannot have the return code 1"},
		"a time to transfer":        {"when_to_transfer_output = ON_MONDAYS", "cannot: condor_submit does not know it"},
		"a checkpoint elsewhere":    {"checkpoint_destination = file:///x", "cannot: checkpoints are kept in the schedd's spool"},
		"a file of the node": {"transfer_input_files = file:///farm/x",
			"cannot: file:///farm/x is a file of the execute node"},
		"a URL with a fragment": {"transfer_input_files = http://farm/hay#2",
			"cannot: http://farm/hay#2 is no URL of letters"},
		"$$(X) in arguments": {"arguments = $$(Memory)", "cannot: $$(...) is known only once"},
		"$$(X)":              {"request_memory = $$(Memory)", "cannot: $$(...) is known only once"},
		"an output with a dot": {"transfer_output_files = .x", `cannot: an output must not be called .x; instead: a relative path of letters, digits and _ . + = @ % ~ : -, ` +
			`no part of which begins with a dot; or transfer_output_files = "" if nothing else`},
		"a reason that is computed": {`on_exit_hold_reason = strcat("a", "b")`, "cannot: the reason of a hold is a text"},
		"a function that builds":    {`rank = size(split("a b"))`, "cannot: the function split is not one that htcd lets"},
		"an image that is fetched":  {"docker_pull_policy = always", "cannot: a machine fetches an image that it lacks, and no other"},
		"a guess of what is used":   {"disk_usage = 5", "cannot: htcd has no guess of what a job uses; instead: request_memory and request_disk"},
		"more memory at the next try": {"retry_request_memory = 8GB",
			"cannot: what a job asks for when it is tried again is no command of htcd's; instead: spec.memoryRetry"},
		"a command without a place": {"cron_minute = 5", "cannot: htcd sends jobs at once; instead: htcd submit at that time"},
	} {
		t.Run(name, func(t *testing.T) {
			said, r := lines(t, "executable = p.sh\n"+c.text+"\nqueue\n", convert.Options{Image: "centos"}, large)
			require.Contains(t, said, "job.sub:2: "+c.text+"\n    "+c.want)
			require.True(t, convert.Lost(r.Lines))
		})
	}
}

func TestATableOfManyJobsGoesIntoAConfigMap(t *testing.T) {
	said, r := lines(
		t,
		"executable = p.sh\narguments = $(x)\nqueue 2000 x in (a b)\n",
		convert.Options{Image: "centos"},
		nil,
	)
	require.False(t, convert.Lost(r.Lines), said)
	require.Len(t, r.HTCJobs, 1)
	from := r.HTCJobs[0].Spec.ItemsFrom.ConfigMapKeyRef
	require.Equal(t, r.ConfigMaps[0][0].Name, from.Name)
	require.Equal(t, 4001, strings.Count(r.ConfigMaps[0][0].Data[from.Key], "\n"))
}

func TestARunTimeIsADeadline(t *testing.T) {
	for text, want := range map[string]int64{
		"allowed_execute_duration = 600": 600, "+MaxRuntime = 5400": 5400, `+JobFlavour = "workday"`: 8 * 3600,
		"+JobFlavour = \"longlunch\"\n+MaxRuntime = 60": 60, "MY.MaxRuntime = 61\n+JobFlavour = \"tomorrow\"": 61,
		"+JobFlavour = \"mine\"": 0, "+MaxRuntime = 60 * 60": 0, "allowed_execute_duration = 60 * JobPrio": 0, "+MaxRuntime = -1": 0,
		`+Other = "workday"`: 0,
	} {
		said, r := lines(t, "executable = p.sh\n"+text+"\nqueue\n", convert.Options{Image: "centos"}, nil)
		require.False(t, convert.Lost(r.Lines), said)
		spec := r.HTCJobs[0].Spec
		require.Equal(t, want != 0, spec.RunDeadlineSeconds != nil, text)
		if want != 0 {
			require.Equal(t, want, *spec.RunDeadlineSeconds, text)
		}
		require.Equal(t, strings.Count(text, "+")+strings.Count(text, "MY."), strings.Count(spec.HTCOpts, "+"), text)
	}
}

func TestManyJobsHaveAFileAndAURLEach(t *testing.T) {
	files, names := fstest.MapFS{}, ""
	for i := range 150 {
		name := fmt.Sprintf("in/%d/part", i)
		files[name], names = &fstest.MapFile{Data: []byte(name)}, names+name+", https://data.example.org/"+name+"?x=y\n"
	}
	files["parts"] = &fstest.MapFile{Data: []byte(names)}
	said, r := lines(t, "executable = p.sh\ntransfer_input_files = $(file), $(url)\nqueue file, url from parts\n",
		convert.Options{Image: "centos"}, files)
	require.False(t, convert.Lost(r.Lines), said)
	spec := r.HTCJobs[0].Spec
	require.Len(t, spec.Inputs, 3)
	require.Equal(t, "part", spec.Inputs[1].Name)
	require.Equal(t, "{{item.INPUT1}}", spec.Inputs[1].ConfigMapKeyRef.Key)
	require.Equal(t, "part-2", spec.Inputs[2].Name)
	require.Equal(t, "{{item.url}}", spec.Inputs[2].URL)
	require.Contains(t, spec.Script.Source, "mv part-2 part\n")
}

func TestADirectoryOfManyFilesIsOneArchive(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 30 {
		files[fmt.Sprintf("maps/in/%d", i)] = &fstest.MapFile{Data: []byte("map")}
		files[fmt.Sprintf("keys/%d", i)] = &fstest.MapFile{Data: []byte("key")}
	}
	files["p.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n")}
	e := env(files)
	e.Upload = func(path string) (string, error) { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(path))), nil }
	said := func(text string) (string, convert.Result) {
		r, err := convert.Submit("job.sub", []byte("executable = p.sh\n"+text), e, convert.Options{Image: "centos"})
		require.NoError(t, err)
		var b strings.Builder
		convert.WriteTable(&b, r.Lines, true)
		return b.String(), r
	}
	words, r := said("transfer_input_files = maps, keys/\nqueue 3\n")
	require.False(t, convert.Lost(r.Lines), words)
	require.Contains(t, words, "the directory maps is uploaded as an archive")
	maps, _ := e.Upload("maps")
	keys, _ := e.Upload("keys")
	require.Equal(t, []v1alpha1.Input{
		{Name: "maps", Upload: maps, Unpack: v1alpha1.UnpackDirectory},
		{Name: "keys.tar.gz", Upload: keys, Unpack: v1alpha1.UnpackHere},
	}, r.HTCJobs[0].Spec.Inputs[1:])
	accepted(t, r.HTCJobs[0])

	words, r = said("transfer_input_files = $(d)\nqueue d in (maps keys)\n")
	require.False(t, convert.Lost(r.Lines), words)
	require.Len(t, r.HTCJobs[0].Spec.Inputs, 61, "each job has another directory, whose files are in ConfigMaps")
	for i := range 60 {
		files[fmt.Sprintf("keys/more%d", i)] = &fstest.MapFile{Data: []byte("key")}
	}
	words, r = said("transfer_input_files = $(d)\nqueue d in (maps keys)\n")
	require.True(t, convert.Lost(r.Lines))
	require.Contains(t, words, "the jobs have more than 100 input files together")
}

func TestAVariableOfAnItemHidesNoOtherVariable(t *testing.T) {
	_, r := lines(t, `executable = p.sh
environment = "ARG2=mine x=other"
arguments = "$(ARG1) $INT(n) $(x)"
n = $(Process) + 1
queue ARG1, x from (
 a 1
 b 2
)
`, convert.Options{Image: "centos"}, nil)
	spec := r.HTCJobs[0].Spec
	require.Equal(t, "p.sh", spec.Script.Executable)
	require.Equal(t, []string{"{{item.ARG1}}", "{{item.ARG2_}}", "{{item.ARG3}}"}, spec.Script.Args)
	require.Equal(t, v1alpha1.Item{"ARG1": "b", "ARG2_": "2", "ARG3": "2"}, spec.Items[1])
	require.Equal(t, v1alpha1.EnvironmentValue("mine"), spec.Environment["ARG2"])
}

func TestAnotherContentOfAFileIsAnotherHTCJob(t *testing.T) {
	name := func(content string) string {
		_, r := lines(t, "executable = p.sh\ninput = in\nqueue\n", convert.Options{Image: "centos"},
			fstest.MapFS{"in": {Data: []byte(content)}})
		return r.ConfigMaps[0][0].Name
	}
	require.Equal(t, name("a"), name("a"))
	require.NotEqual(t, name("a"), name("b"))
}

func TestTheAttributesThatNeedNoAllowanceAreThoseOfHTCOpts(t *testing.T) {
	for _, name := range htcopts.Attributes {
		said, r := lines(
			t,
			fmt.Sprintf("executable = p.sh\n+%s = 1\nqueue\n", name),
			convert.Options{Image: "centos"},
			nil,
		)
		require.NotContains(t, said, "allow", name)
		r.HTCJobs[0].Namespace, r.HTCJobs[0].UID = "ns", "u-1"
		_, err := site.Site{}.Render(&r.HTCJobs[0], pool.Pool{}, 1, nil)
		require.NoError(t, err, name)
	}
}

func TestTheFunctionsAreThoseOfHTCOpts(t *testing.T) {
	for _, name := range htcopts.Functions {
		said, r := lines(t, "executable = p.sh\nrank = "+name+"(1)\nqueue\n", convert.Options{Image: "centos"}, nil)
		require.False(t, convert.Lost(r.Lines), said)
		accepted(t, r.HTCJobs[0])
	}
}

func TestAnErrorOfTheDiskIsToldAtTheLine(t *testing.T) {
	e := env(fstest.MapFS{"p.sh": {}})
	e.List = func(string) ([]string, bool, error) { return nil, false, errors.New("input/output error") }
	r, err := convert.Submit("job.sub", []byte("executable = p.sh\ntransfer_input_files = a\nqueue\n"), e,
		convert.Options{Image: "centos"})
	require.NoError(t, err)
	require.True(t, convert.Lost(r.Lines))
}

// What users write every day, held against condor_submit by test/schedd.
func TestNothingOfTheCorpusIsLost(t *testing.T) {
	archives, err := filepath.Glob("testdata/corpus/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, path := range archives {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			files := fstest.MapFS{}
			for _, f := range archive.Files {
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			r, err := convert.Submit("job.sub", files["job.sub"].Data, env(files), convert.Options{Image: "centos"})
			require.NoError(t, err)
			require.Len(t, r.HTCJobs, 1)
			for _, l := range r.Lines {
				require.NotEqual(t, convert.Cannot, l.Verdict, l.Text)
			}
			accepted(t, r.HTCJobs[0])
		})
	}
}

// TestAnyTextIsReadBackFromTheManifest has characters that YAML does not hold as they are.
func TestAnyTextIsReadBackFromTheManifest(t *testing.T) {
	const odd = "\x1b[1m\x7f\u0080\u0085\u2028\ufeff\ufffe"
	_, r := lines(t, "executable = p.sh\narguments = a\x7fb\ndescription = \u0090\ntransfer_input_files = odd\nqueue\n",
		convert.Options{Image: "centos"}, fstest.MapFS{"odd": {Data: []byte(odd)}})
	text, err := r.YAML()
	require.NoError(t, err)
	var files, job struct {
		Data map[string]string
		Spec struct{ Script struct{ Args []string } }
	}
	_, first, _ := strings.Cut(string(text), "---\n")
	first, second, _ := strings.Cut(first, "---\n")
	require.NoError(t, yaml.Unmarshal([]byte(first), &files))
	require.NoError(t, yaml.Unmarshal([]byte(second), &job))
	require.Equal(t, odd, files.Data["odd"])
	require.Equal(t, []string{"a\x7fb"}, job.Spec.Script.Args)
}

func TestMacrosStandInExpressions(t *testing.T) {
	said, r := lines(t, "executable = p.sh\nrequirements = Memory > $(m)\n+Part = $(m)\n"+
		"periodic_remove = NumJobStarts > $(m)\nqueue m in (1, 2)\n", convert.Options{Image: "centos"}, nil)
	require.Len(t, r.HTCJobs, 2, said)
	require.Equal(t, "Memory > 2", r.HTCJobs[1].Spec.Requirements)
	require.Equal(t, "+Part = 2\nperiodic_remove = NumJobStarts > 2", r.HTCJobs[1].Spec.HTCOpts)
}

func TestOutputsThatCannotBeNamedComeBackWithAllOthers(t *testing.T) {
	said, r := lines(t, "executable = p.sh\ntransfer_output_files = my result.txt\nqueue\n",
		convert.Options{Image: "centos"}, nil)
	require.Contains(t, said, "cannot: an output must not be called my result.txt")
	require.Empty(t, r.HTCJobs[0].Spec.Outputs)
	require.Empty(t, r.HTCJobs[0].Spec.HTCOpts)

	_, r = lines(t, "executable = p.sh\ntransfer_output_files = .empty\nqueue\n", convert.Options{Image: "centos"}, nil)
	require.Equal(t, `transfer_output_files = ""`, r.HTCJobs[0].Spec.HTCOpts)
}

func TestQuotesOfGetenvBelongToTheNames(t *testing.T) {
	said, r := lines(t, "executable = p.sh\ngetenv = \"USER, REEF*\"\nqueue\n", convert.Options{Image: "centos"}, nil)
	require.Contains(t, said, "none of this shell's variables has such a name")
	require.Empty(t, r.HTCJobs[0].Spec.Environment)
}

func TestARequestThatIsNoExpressionIsRefused(t *testing.T) {
	said, r := lines(t, "executable = p.sh\nrequest_memory = 2 GB or more\nqueue\n",
		convert.Options{Image: "centos"}, nil)
	require.Contains(t, said, `cannot: condor_submit refuses "2 GB or more", which is no ClassAd expression`)
	require.Empty(t, r.HTCJobs)
}

func TestJobsDifferInWhatIsNoTextOfTheSpec(t *testing.T) {
	_, r := lines(t, `executable = p.sh
container_image = $(image)
accounting_group = $(group)
max_materialize = $(most)
hold = $(held)
request_cpus = 2
queue image, group, most, held from (
alma9, group_a.one, 3, true
alma8, group_b.two, 4, true
alma8, group_b.two, 4, false
alma8, group_b.two, 4, false
)
`, convert.Options{}, nil)
	require.Len(t, r.HTCJobs, 3)
	for i, image := range []string{"alma9", "alma8", "alma8"} {
		spec := r.HTCJobs[i].Spec
		require.Equal(t, image, spec.Script.Image)
		require.Equal(t, []string{"group_a.one", "group_b.two", "group_b.two"}[i], spec.AccountingGroup)
		require.Equal(t, []int32{3, 4, 4}[i], *spec.Parallelism)
		require.Equal(t, i < 2, spec.Suspend)
		require.Equal(t, "2", spec.Resources.CPUs.String())
	}
	require.Equal(t, int32(2), *r.HTCJobs[2].Spec.Script.Queue)
}

func TestOutputAndErrorAreOneForSomeJobs(t *testing.T) {
	_, r := lines(t, `executable = p.sh
output = $(x)
error = $(y)
request_cpus = 2
queue x, y from (
one, one
two, three
four, four
)
`, convert.Options{Image: "centos"}, nil)
	require.Len(t, r.HTCJobs, 2)
	require.Contains(t, r.HTCJobs[0].Spec.Script.Source, "2>&1")
	require.Len(t, r.HTCJobs[0].Spec.Items, 2)
	require.Equal(t, "2", r.HTCJobs[1].Spec.Resources.CPUs.String())
}

func TestAVariableOfQueueMayBeAnAttribute(t *testing.T) {
	_, r := lines(t, "executable = p.sh\nqueue MY.Nest in (1 2)\n", convert.Options{Image: "centos"}, nil)
	require.Len(t, r.HTCJobs, 2)
	require.Equal(t, "+Nest = 2", r.HTCJobs[1].Spec.HTCOpts)
}

func TestGetenvTakesNoVariableThatItExcludes(t *testing.T) {
	for value, want := range map[string]map[string]v1alpha1.EnvironmentValue{
		"!REEF_A, *_*": {"REEF_B": "2"}, "reef*; !reef_b": {"REEF_A": "1"}, "REEF*\t,!*": nil,
	} {
		said, r := lines(t, "executable = p.sh\ngetenv = "+value+"\nqueue\n", convert.Options{Image: "centos"}, nil)
		require.False(t, convert.Lost(r.Lines), said)
		require.Equal(t, want, r.HTCJobs[0].Spec.Environment, value)
	}
	said, r := lines(t, "executable = p.sh\ngetenv = !USER\nqueue\n", convert.Options{Image: "centos"}, nil)
	require.Contains(t, said, "cannot: all variables of a shell are too much, and some are secrets; instead: "+
		"--append 'getenv = NAME, NAME' for those that the program needs, or --append 'getenv = false' if the image")
	require.Empty(t, r.HTCJobs[0].Spec.Environment)
}

func TestWhatIsAppendedReplacesGetenv(t *testing.T) {
	for _, text := range []string{
		"getenv = true\nexecutable = p.sh\nqueue\n", "executable = p.sh\nGetEnv = True\nqueue 2\n",
		"executable = p.sh\nget_env = true\nqueue\n",
		"executable = p.sh\nif true\ngetenv = true\nendif\nqueue x in (a)\n",
	} {
		for appended, want := range map[string]map[string]v1alpha1.EnvironmentValue{
			"getenv = REEF_B": {"REEF_B": "2"}, "getenv = false": nil,
		} {
			here := env(fstest.MapFS{"p.sh": {}})
			here.After = []string{appended}
			r, err := convert.Submit("job.sub", []byte(text), here, convert.Options{Image: "centos"})
			require.NoError(t, err)
			require.False(t, convert.Lost(r.Lines), r.Lines)
			require.Equal(t, want, r.HTCJobs[0].Spec.Environment, text+appended)
		}
	}
}

func TestSmallRequestsAreRoundedAsHTCondorDoes(t *testing.T) {
	said, r := lines(t, "executable = p.sh\nrequest_memory = 300 KB\nrequest_disk = 500.5 k\nqueue\n",
		convert.Options{Image: "centos"}, nil)
	require.False(t, convert.Lost(r.Lines), said)
	require.Equal(t, "1Mi", r.HTCJobs[0].Spec.Resources.Memory.String())
	require.Equal(t, "request_disk = 501", r.HTCJobs[0].Spec.HTCOpts)
	accepted(t, r.HTCJobs[0])
}

func TestADirectoryThatComesAsADirectoryIsSaid(t *testing.T) {
	said, r := lines(t, "executable = p.sh\ntransfer_output_files = eggs/, nests\nqueue\n",
		convert.Options{Image: "centos"}, nil)
	require.False(t, convert.Lost(r.Lines))
	require.Contains(t, said, "taken as spec.outputs: eggs/ comes as the directory eggs; to do: look for its files there")
	require.Equal(t, "eggs", r.HTCJobs[0].Spec.Outputs[0].Path)
}

func TestOutputsKeepTheirPathsIfTheFileSaysSo(t *testing.T) {
	for command, want := range map[string]map[string]v1alpha1.LandingPlace{
		"":                               {"nest/egg.txt": "egg.txt"},
		"preserve_relative_paths = true": nil,
	} {
		_, r := lines(t, "executable = p.sh\noutput = egg.out\ntransfer_output_files = nest/egg.txt\n"+command+"\nqueue\n",
			convert.Options{Image: "centos"}, nil)
		require.Equal(t, want, r.HTCJobs[0].Spec.Landing.Files)
	}
}

func TestManyQueueStatementsAreToldAtOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString("executable = p.sh\n")
	for i := range 30_000 {
		fmt.Fprintf(&text, "arguments = %d\nqueue\n", i)
	}
	said, r := lines(t, text.String(), convert.Options{Image: "centos"}, nil)
	require.Len(t, r.HTCJobs, 1)
	require.Contains(t, said, "job.sub:60000: arguments = 29999\n    taken as spec.script.args\n")
}
