package convert

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/convert/submitfile"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// rule says what becomes of a command of a job.
type rule func(v *view, value string, by *submitfile.Statement)

// aliases are other names of commands.
var aliases = map[string]string{
	"requestcpus":          "request_cpus",
	"requestmemory":        "request_memory",
	"requestdisk":          "request_disk",
	"requestgpus":          "request_gpus",
	"args":                 "arguments",
	"arguments2":           "arguments",
	"env":                  "environment",
	"environment2":         "environment",
	"get_env":              "getenv",
	"prio":                 "priority",
	"jobbatchname":         "batch_name",
	"batchname":            "batch_name",
	"nodecount":            "node_count",
	"stdin":                "input",
	"stdout":               "output",
	"stderr":               "error",
	"initial_dir":          "initialdir",
	"job_iwd":              "initialdir",
	"cmd":                  "executable",
	"transferinputfiles":   "transfer_input_files",
	"transferoutputfiles":  "transfer_output_files",
	"materialize_max_idle": "max_idle",
	"jobuniverse":          "universe",
	"useoauthservices":     "use_oauth_services",
	"preferences":          "rank",
	"use_scitoken":         "use_scitokens",
	// Attributes of the job.
	"acctgroupuser":             "accounting_group_user",
	"dagmannodeslog":            "dagman_log",
	"gpusmaxcapability":         "gpus_maximum_capability",
	"gpusmincapability":         "gpus_minimum_capability",
	"gpusminmemory":             "gpus_minimum_memory",
	"gpusminruntime":            "gpus_minimum_runtime",
	"isnoopjob":                 "noop_job",
	"iwd":                       "initialdir",
	"jobbatchid":                "batch_id",
	"jobdescription":            "description",
	"jobmaterializelimit":       "max_materialize",
	"jobmaterializemaxidle":     "max_idle",
	"jobmaxretries":             "max_retries",
	"jobnotification":           "notification",
	"jobprio":                   "priority",
	"jobsetname":                "jobset",
	"jobstarterdebug":           "starter_debug",
	"jobstarterlog":             "starter_log",
	"jobsuccessexitcode":        "success_exit_code",
	"lastmatchlistlength":       "match_list_length",
	"leavejobinqueue":           "leave_in_queue",
	"machinecount":              "machine_count",
	"manifestdesired":           "manifest",
	"remoteiwd":                 "remote_initialdir",
	"streamerr":                 "stream_error",
	"streamin":                  "stream_input",
	"streamout":                 "stream_output",
	"successcheckpointexitcode": "checkpoint_exit_code",
	"transfercheckpoint":        "transfer_checkpoint_files",
	"transfererr":               "transfer_error",
	"transferin":                "transfer_input",
	"transferout":               "transfer_output",
	"transformonevict":          "on_evict_checks",
	"userlog":                   "log",
	"userlogexecuteeventattrs":  "ulog_execute_attrs",
	"userlogusexml":             "log_xml",
}

// canonical is the name of a command by which it is known here.
func canonical(name string) string {
	name = strings.ToLower(name)
	return cmp.Or(aliases[name], name)
}

// asAttributes are the commands that condor_submit also takes by the name of their attribute, which is theirs without
// _.
var asAttributes = strings.Fields(`accounting_group allowed_execute_duration allowed_job_duration append_files
	checkpoint_destination compress_files container_image container_is_common container_service_names
	container_target_dir core_size cron_day_of_month cron_day_of_week cron_hour cron_minute cron_month cron_prep_time
	cron_window cuda_version dagman_job_id deferral_prep_time deferral_time deferral_window
	delegate_job_gsi_credentials_lifetime disk_usage docker_image docker_network_type docker_override_entrypoint
	docker_pull_policy docker_send_credentials dont_encrypt_input_files dont_encrypt_output_files email_attributes
	encrypt_execute_directory encrypt_input_files encrypt_output_files erase_output_and_error_on_restart fetch_files
	file_remaps hold_kill_sig image_size jar_files java_vm_args job_ad_information_attrs job_lease_duration
	job_machine_attrs job_machine_attrs_history_length job_max_vacate_time keep_claim_idle kill_sig kill_sig_timeout
	load_profile local_files manifest_dir max_job_retirement_time max_transfer_input_mb max_transfer_output_mb
	mount_under_scratch next_job_start_delay nice_user noop_job_exit_code noop_job_exit_signal notify_user on_exit_hold
	on_exit_hold_reason on_exit_hold_subcode on_exit_remove output_destination output_directory periodic_hold
	periodic_hold_reason periodic_hold_subcode periodic_release periodic_remove periodic_vacate preserve_relative_paths
	primary_unix_group project_name public_input_files remove_kill_sig require_gpus run_as_owner scitokens_file
	should_transfer_files skip_if_dataflow stack_size submit_event_notes submit_event_notes_attrs
	submit_event_user_notes suspend_job_at_exec transfer_container transfer_executable transfer_output_remaps
	transfer_plugins want_graceful_removal want_io_proxy want_job_networking when_to_transfer_output`)

// spellings are the other names of a command.
var spellings = map[string][]string{}

// rules are for the commands that make an HTCJob's shape: what all its jobs have in common. Those that may differ from
// job to job are in parts.
var rules = map[string]rule{
	"universe":                 universe,
	"executable":               executable,
	"transfer_executable":      transferExecutable,
	"container_image":          image,
	"docker_image":             image,
	"request_cpus":             requestCPUs,
	"request_memory":           requestMemory,
	"request_disk":             requestDisk,
	"request_gpus":             requestGPUs,
	"requirements":             requirements,
	"priority":                 priority,
	"max_retries":              retries,
	"success_exit_code":        successCode,
	"accounting_group":         accountingGroup,
	"batch_name":               batchName,
	"hold":                     hold,
	"use_x509userproxy":        proxy,
	"x509userproxy":            proxy,
	"use_oauth_services":       token,
	"use_scitokens":            token,
	"scitokens_file":           token,
	"allowed_execute_duration": runTime,
	"on_exit_hold_reason":      quotedReason,
	"periodic_hold_reason":     quotedReason,
	"should_transfer_files":    shouldTransfer,
	"when_to_transfer_output":  whenToTransfer,
	"notification":             notification,
	"output":                   stream,
	"error":                    stream,
	"transfer_output":          transferStream,
	"transfer_error":           transferStream,
	"transfer_output_remaps":   remaps,
	"shell":                    shellCommand,

	"log":                           moot("htcd tells in the status and in Events what happens to each job"),
	"log_xml":                       moot("there is no log"),
	"stream_output":                 moot("htcd logs --follow shows the output of jobs that run"),
	"stream_error":                  moot("htcd logs --follow shows the output of jobs that run"),
	"leave_in_queue":                moot("htcd decides when a job leaves HTCondor's queue"),
	"copy_to_spool":                 moot("htcd spools all files"),
	"docker_pull_policy":            pullPolicy,
	"load_profile":                  moot("it is for machines with Windows"),
	"docker_network_type":           moot("a job has the network of its node"),
	"allow_arguments_v1":            moot("both forms of arguments are read"),
	"allow_environment_v1":          moot("both forms of environment are read"),
	"skip_filechecks":               moot("htcd checks the files"),
	"submit_event_notes":            moot("there is no log"),
	"ulog_execute_attrs":            moot("there is no log"),
	"dagman_log":                    moot("there is no log"),
	"job_ad_information_attrs":      moot("there is no log"),
	"retry_request_memory":          cannot(moreMemory, moreMemoryInstead),
	"retry_request_memory_increase": cannot(moreMemory, moreMemoryInstead),
	"retry_request_memory_max":      cannot(moreMemory, moreMemoryInstead),
	"description":                   moot("it is only shown"),
	"stream_input":                  moot("the standard input is a file of the job"),
	"transfer_input":                moot("the standard input is a file of the job"),
	"keep_claim_idle":               moot("it keeps a machine for jobs to come, and changes none"),
	"run_as_owner":                  moot("it is for machines with Windows"),
	"transfer_container":            moot("a machine fetches an image that it lacks"),
	"docker_override_entrypoint":    moot("the entry point of an image is not run"),
	"dont_encrypt_input_files":      moot("it only saves time"),
	"dont_encrypt_output_files":     moot("it only saves time"),
	"encrypt_execute_directory":     unlessFalse(cannot(encryption, encryptionInstead)),
	"encrypt_input_files":           cannot(encryption, encryptionInstead),
	"encrypt_output_files":          cannot(encryption, encryptionInstead),
	"noop_job":                      unlessFalse(cannot("every job of an HTCJob runs", "a file without this job")),
	"mount_under_scratch":           mountUnderScratch,
	"kill_sig":                      killSignal,
	"remove_kill_sig":               killSignal,
	"hold_kill_sig":                 killSignal,
	"preserve_relative_paths":       unlessFalse(preserve),
	"project_name":                  projectName,

	"max_idle":        maxIdle,
	"max_materialize": maxMaterialize,

	"checkpoint_exit_code":      checkpointCode,
	"transfer_checkpoint_files": checkpointFiles,
	"checkpoint_destination": cannot("checkpoints are kept in the schedd's spool",
		"transfer_checkpoint_files alone"),
	"machine_count":                         machineCount,
	"node_count":                            machineCount,
	"notify_user":                           notifyUser,
	"email_attributes":                      notifyUser,
	"delegate_job_gsi_credentials_lifetime": moot("jobs have the proxy of the Secret, for as long as that lasts"),
	"accounting_group_user": cannot("jobs run as the pool's account",
		"accounting_group alone; htcd's administrator can allow accounting_group_user (--allow-htcopts)"),
	"container_target_dir": cannot("htcd chooses the directory in the container", "relative paths in the program"),
	"output_destination":   cannot("outputs go to URLs one by one", "url at each of spec.outputs (docs/data.md)"),
	"grid_resource":        cannot("jobs go to a schedd that htcd serves", "an HTCPool (spec.pool)"),
	"job_machine_attrs": cannot("htcd's administrator has to allow it",
		"requirements without the machines before, or --allow-htcopts=job_machine_attrs there"),
	"batch_project": cannot("htcd's administrator has to allow it",
		"accounting_group, or --allow-htcopts=batch_project there"),
}

// passed are commands that htcopts have, too.
var passed = []string{
	"require_gpus", "gpus_minimum_memory", "gpus_minimum_capability", "gpus_maximum_capability", "gpus_minimum_runtime",
	"rank", "nice_user", "concurrency_limits", "concurrency_limits_expr",
	"retry_until", "on_exit_hold", "on_exit_hold_subcode", "on_exit_remove", "periodic_hold", "periodic_hold_subcode",
	"periodic_release", "periodic_remove", "allowed_job_duration", "job_lease_duration",
	"job_max_vacate_time", "want_graceful_removal",
}

const (
	moreMemory        = "what a job asks for when it is tried again is no command of htcd's"
	moreMemoryInstead = "spec.memoryRetry, which lets a job that ran out of memory run again with more"
)

// tokenRights matches commands that say what a token of use_oauth_services is to be good for.
var tokenRights = regexp.MustCompile(`_oauth_(permissions|resource|options)(_[a-z0-9_]+)?$`)

func rightsOfToken(v *view, _ string, by *submitfile.Statement) {
	v.say(by, Asks, "the token comes from a Secret, with the rights that it has", "get it with these rights", "")
}

// inParts are the commands that parts reads.
var inParts = []string{"arguments", "environment", "getenv", "input", "transfer_input_files", "public_input_files",
	"transfer_output_files", "initialdir"}

// others are commands of condor_submit that no rule knows, a few of them by their beginning: whatever is none is a
// macro of the user's, as batch_size and docker_tag are.
var others = regexp.MustCompile(`^(` +
	`append_files|arc_(application|data_staging|resources|rte)|` +
	`aws_(access_key_id_file|region|secret_access_key_file)|` +
	`azure_(admin_key|admin_username|auth_file|image|location|size)|` +
	`batch_(extra_submit_args|id|queue|runtime)|buffer_(block_size|files|size)|cloud_label_.*|` +
	`common_input_files|compress_files|container_is_common|container_service_names|core_size|` +
	`cron_(day_of_month|day_of_week|hour|minute|month|prep_time|window)|cuda_version|dagman_job_id|` +
	`deferral_(prep_time|time|window)|disk_usage|docker_send_credentials|` +
	`ec2_(access_key_id|ami_id|availability_zone|block_device_mapping|ebs_volumes|elastic_ip|` +
	`iam_profile_(arn|name)|instance_type|key_?pair(_file)?|keyp_air|parameter_.*|` +
	`secret_access_key|security_(groups|ids)|spot_price|tag_.*|` +
	`user_data(_file)?|vpc_(ip|subnet))|` +
	`erase_output_and_error_on_restart|exit_requirements|fetch_files|file_remaps|` +
	`gce_(account|auth_file|image|json_file|machine_type|metadata(_file)?|preemptible)|` +
	`gs_(access_key_id_file|secret_access_key_file)|image_size|interactive_(args|executable)|jar_files|` +
	`java_vm_(args|arguments2?)|job_machine_attrs_history_length|jobset([.].*)?|kill_sig_timeout|local_files|` +
	`manifest(_dir)?|match_list_length|max_job_retirement_time|max_transfer_(input|output)_mb|memory_usage|` +
	`next_job_start_delay|noop_job_exit_(code|signal)|on_evict_checks|output_directory|` +
	`parallel_script_(shadow|starter)|periodic_vacate|primary_unix_group|` +
	`(remote_)+(universe|grid_resource|initialdir)|require_.+|rendezvousdir|retry_request_disk(_increase|_max)?|` +
	`s3_(access_key_id_file|secret_access_key_file)|send_credential|skip_if_dataflow|stack_size|starter_(debug|log)|` +
	`submit_event_(notes_attrs|user_notes)|suspend_job_at_exec|` +
	`tool_daemon_(args|arguments2?|cmd|error|input|output)|transfer_common_input|transfer_plugins|` +
	`vm_(checkpoint|disk|macaddr|memory|networking(_type)?|no_output_vm|type|vcpus|vnc)|want_.*|wantnametag|` +
	`xen_(initrd|kernel|kernel_params|root)|.+_container_port|request_gpus?_memory` + `)$`)

func init() {
	for _, name := range passed {
		rules[name] = pass
	}
	for _, name := range asAttributes {
		aliases[strings.ReplaceAll(name, "_", "")] = name
	}
	for _, other := range slices.Sorted(maps.Keys(aliases)) {
		spellings[aliases[other]] = append(spellings[aliases[other]], other)
	}
}

// reasons say of those of the others that people use why htcd has nothing for them.
var reasons = []struct {
	names        *regexp.Regexp
	why, instead string
}{
	{regexp.MustCompile(`^(image_size|disk_usage|memory_usage)$`), "htcd has no guess of what a job uses",
		"request_memory and request_disk"},
	{regexp.MustCompile(`^(cron|deferral)_`), "htcd sends jobs at once",
		"htcd submit at that time, from cron or a CronJob of Kubernetes"},
	{regexp.MustCompile(`^kill_sig_timeout$`), "job_max_vacate_time says how long a job has to end", "that command"},
	{regexp.MustCompile(`^(vm|xen)_`), "htcd runs no virtual machines", "a container that has the program"},
	{regexp.MustCompile(`^(java|jar)_`), "htcd has no java universe",
		"executable = /usr/bin/java, and the .jar in transfer_input_files"},
	{regexp.MustCompile(`^(arc|aws|azure|batch|cloud|ec2|gce|gs|s3)_`), "jobs go to a schedd that htcd serves",
		"an HTCPool (spec.pool)"},
	{regexp.MustCompile(`^container_service_names$|_container_port$`), "the ports of a job have no names",
		"htcd port-forward NAME PORT, while the job runs"},
	{
		regexp.MustCompile(`^jobset`),
		"htcd has no job sets",
		"a label of the HTCJobs, for kubectl get htcjob -l LABEL=VALUE",
	},
	{regexp.MustCompile(`^cuda_version$`), "HTCondor has another command for it",
		"gpus_minimum_runtime, the lowest version of CUDA that will do"},
	{regexp.MustCompile(`^skip_if_dataflow$`), "htcd does not look at what an earlier run has left",
		"a table of the jobs whose results are missing"},
	{regexp.MustCompile(`^next_job_start_delay$`), "jobs start as soon as there are machines",
		"max_materialize, which bounds how many are there at a time"},
	{
		regexp.MustCompile(`^max_job_retirement_time$`),
		"the pool decides how long a job may go on when its machine is claimed",
		"checkpoint_exit_code, or ON_EXIT_OR_EVICT, for a program that goes on where it was",
	},
	{
		regexp.MustCompile(`^require_`),
		"htcd has it for GPUs only (require_gpus)",
		"requirements with TARGET. before the attributes of machines",
	},
}

// nothingFor says why a command cannot be had.
func nothingFor(name string) rule {
	for _, r := range reasons {
		if r.names.MatchString(name) {
			return cannot(r.why, r.instead)
		}
	}
	return cannot("htcd has nothing for it", "docs/htcjob.md lists what there is")
}

func moot(words string) rule {
	return func(v *view, _ string, by *submitfile.Statement) { v.say(by, Moot, words, "", "") }
}

func cannot(why, instead string) rule {
	return func(v *view, _ string, by *submitfile.Statement) { v.say(by, Cannot, why, instead, "") }
}

// unlessFalse is about commands whose default is false.
func unlessFalse(otherwise rule) rule {
	return func(v *view, value string, by *submitfile.Statement) {
		if isFalse(value) {
			v.say(by, Moot, "it is the default", "", "")
			return
		}
		otherwise(v, value, by)
	}
}

const (
	encryption        = "the site decides what is encrypted"
	encryptionInstead = "ask its administrators"
)

// mountUnderScratch names directories that are the job's own.
func mountUnderScratch(v *view, value string, by *submitfile.Statement) {
	for _, dir := range commas(value) {
		if dir = strings.TrimRight(dir, "/"); dir != "/tmp" && dir != "/var/tmp" {
			v.say(
				by,
				Cannot,
				"of a container's directories /tmp, /var/tmp and HOME are the job's own",
				"one of these",
				"",
			)
			return
		}
	}
	v.say(by, Moot, "they are the job's own", "", "")
}

func killSignal(v *view, value string, by *submitfile.Statement) {
	if slices.Contains([]string{"SIGTERM", "TERM", "15"}, strings.ToUpper(value)) {
		v.say(by, Moot, "it is the default", "", "")
		return
	}
	v.say(by, Cannot, "a job is asked to end by SIGTERM", "a program, or a script around it, that ends at SIGTERM", "")
}

// preserve says in parts where inputs lie.
func preserve(v *view, _ string, by *submitfile.Statement) {
	v.say(by, Taken, "", "", "spec.script.source")
}

// projectName is a command of HTCondor 25; 23 has the attribute.
func projectName(v *view, value string, by *submitfile.Statement) {
	v.option("+ProjectName", classad.Quote(strings.Trim(value, `"`)), by)
}

// customRequest is for a resource of the pool's own; condor_submit takes an expression for it.
func customRequest(v *view, value string, by *submitfile.Statement) {
	if _, err := classad.ParseExpr(value); err != nil {
		v.refuse(
			by,
			fmt.Sprintf(
				"condor_submit refuses %q: %s is no request that it knows, and of one of a pool's own it takes "+
					"a number or an expression",
				value,
				by.Name,
			),
			"request_memory, or the right name",
		)
		return
	}
	v.option(strings.ToLower(by.Name), value, by)
}

// pass makes it a line of htcopts.
func pass(v *view, value string, by *submitfile.Statement) {
	v.option(canonical(by.Name), value, by)
}

// numbers are commands for which HTCondor takes an expression, and htcd a number only.
var numbers = []string{"job_lease_duration", "priority", "max_retries", "success_exit_code", "gpus_minimum_runtime",
	"gpus_minimum_capability", "gpus_maximum_capability"}

// option adds a line to htcopts.
func (v *view) option(name, value string, by *submitfile.Statement) {
	if strings.Contains(value, "$$") {
		v.say(by, Cannot, "$$(...) is known only once the job has a machine", "an expression with TARGET.", "")
		return
	}
	if _, err := strconv.ParseFloat(value, 64); err != nil && slices.Contains(numbers, name) {
		if value, err = v.job.Expand("$INT(" + by.Name + ")"); err != nil {
			v.say(by, Cannot, "htcd takes no expression for it", "a number", "")
			v.failed = v.failed || v.quiet
			return
		}
	}
	if line := name + " = " + strings.ReplaceAll(value, "\n", " "); v.calls(value, by) && v.takes(line, by) {
		v.shape.Options = append(v.shape.Options, line)
		v.say(by, Taken, "", "", "spec.htcopts")
	}
}

// takes says what is lost if htcd refuses a line of htcopts, at a site that allows all attributes, and these.
func (v *view) takes(line string, by *submitfile.Statement, allow ...string) bool {
	if strings.Contains(line, markOpen) { // no value
		return true
	}
	err := submit.CheckLine(line, allow...)
	if err != nil {
		v.say(by, Cannot, "htcd refuses it: "+err.Error(), "what docs/htcjob.md#htcopts allows", "")
	}
	return err == nil
}

// expressions are the commands whose values condor_submit refuses unless they are expressions, as it does those of
// attributes.
var expressions = []string{"requirements", "rank", "retry_until", "concurrency_limits_expr",
	"on_exit_hold", "on_exit_remove", "periodic_hold", "periodic_release", "periodic_remove", "request_cpus",
	"request_memory", "request_disk", "request_gpus", "require_gpus"}

// calls says what is lost if an expression calls a function that htcd does not let the schedd evaluate. Where there
// must be an expression, it says if there is none.
func (v *view) calls(value string, by *submitfile.Statement) bool {
	x, err := classad.ParseExpr(value)
	if _, wrong := strconv.ParseFloat(value, 64); wrong == nil { // perhaps with leading zeros
		return true
	}
	if err != nil && (by.Kind == submitfile.Attribute || slices.Contains(expressions, canonical(by.Name))) {
		v.refuse(by, fmt.Sprintf("condor_submit refuses %q, which is no ClassAd expression: %s", value, err),
			`an expression, with texts in straight double quotes ("...") and comments on lines of their own`)
		return false
	}
	if err != nil {
		return true // a word, or a mistake that htcd names
	}
	return classad.Walk(x, func(x classad.Expr) bool {
		call, is := x.(*classad.Call)
		if !is ||
			slices.ContainsFunc(htcopts.Functions, func(f string) bool { return strings.EqualFold(f, call.Name) }) {
			return true
		}
		v.say(by, Cannot, "the function "+call.Name+" is not one that htcd lets HTCondor evaluate",
			"those of docs/htcjob.md#expressions", "")
		return false
	})
}

// attribute makes a +Attribute a line of htcopts.
func attribute(v *view, value string, by *submitfile.Statement) {
	lower := strings.ToLower(by.Name)
	switch {
	case slices.Contains(own, lower):
		v.say(by, Moot, "htcd and HTCondor set this attribute themselves", "", "")
		return
	case lower == "singularityimage", lower == "apptainerimage":
		image(v, strings.Trim(value, `"`), by)
		return
	case value == "":
		v.say(by, Moot, "the attribute is absent without it, too", "", "")
		return
	case lower == "jobbatchname":
		batchName(v, value, by)
		return
	case lower == "parallelshutdownpolicy":
		v.say(by, Cannot, "the job ends with the program of node 0, or with the first that fails",
			"a program that waits on node 0 for those of the others", "")
		return
	}
	v.runTimeOf(lower, value)
	known := slices.ContainsFunc(htcopts.Attributes, func(a string) bool { return strings.EqualFold(a, by.Name) })
	if known || strings.Contains(value, "$$") {
		v.option("+"+by.Name, value, by)
		return
	}
	if !v.calls(value, by) {
		return
	}
	line := "+" + by.Name + " = " + strings.ReplaceAll(value, "\n", " ")
	if !v.takes(line, by, "+"+by.Name) {
		return
	}
	v.shape.Options = append(v.shape.Options, line)
	if htcopts.Matches([]string{"*"}, by.Name) {
		v.say(
			by,
			Taken,
			"",
			"htcd's administrator has to allow the attribute: --attributes="+by.Name+" of htcd, or attributes of an HTCPool",
			"spec.htcopts",
		)
		return
	}
	v.say(
		by,
		Taken,
		"",
		"HTCondor acts upon the attribute, and htcd's administrator has to allow it: --allow-htcopts=+"+by.Name,
		"spec.htcopts",
	)
}

// own are attributes that say what the job is.
var own = []string{"owner", "user", "cmd", "iwd", "in", "out", "err", "jobuniverse", "jobstatus", "clusterid",
	"procid", "userlog", "mytype", "targettype", "leavejobinqueue"}

func universe(v *view, value string, by *submitfile.Statement) {
	switch lower := strings.ToLower(value); lower {
	case "docker":
		v.say(by, Taken, "each job runs in a container", "", "")
	case "vanilla", "container", "5":
		v.say(by, Moot, "each job runs in a container", "", "")
	case "parallel":
		v.say(
			by,
			Taken,
			"the program runs in a container on each machine; node 0 has what all print (docs/multinode.md)",
			"",
			"spec.nodes",
		)
	default:
		v.refuse(
			by,
			"htcd runs jobs of the vanilla, docker and container universe, on the machines of its schedd's pool",
			"condor_submit itself; an HTCPool (spec.pool) chooses another pool",
		)
	}
}

// machineCount is what the parallel universe asks for. In others condor_submit takes it as request_cpus.
func machineCount(v *view, value string, by *submitfile.Statement) {
	universe, _ := v.value("universe")
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case !strings.EqualFold(universe, "parallel"):
		v.say(by, Cannot, "it is for universe = parallel", "request_cpus, for more processes on one machine", "")
	case err != nil || n < 1 || n > mostNodes:
		v.refuse(by, fmt.Sprintf("%q is no number of machines from 1 to %d", value, mostNodes), "such a number")
	case n == 1:
		v.say(by, Taken, "a job of one machine is an ordinary one", "", "")
	default:
		v.shape.Spec.Nodes = new(int32(n)) // #nosec G115 -- as bounded
		v.say(by, Taken, "", "", "spec.nodes")
	}
}

// mostNodes is that of the API.
const mostNodes = 256

func executable(v *view, value string, by *submitfile.Statement) {
	switch {
	case v.absent(value):
		v.shape.Executable, v.shape.OfImage = value, true
		v.say(by, Asks, "there is no "+value+" here: the image's own is run", "see that the image has it",
			"spec.script.source")
		return
	case !v.sends(value):
		v.shape.Executable = value
	}
	v.say(by, Taken, "", "", "spec.script.source")
}

// absent reports whether an executable of a container is a program of the image: HTCondor 23 runs every absolute path
// there, and 25 sends the file, if there is one.
func (v *view) absent(executable string) bool {
	universe, _ := v.value("universe")
	return path.IsAbs(executable) && !systemRE.MatchString(executable) && !v.c.here(executable) &&
		v.lacks("transfer_executable") && (!v.lacks("container_image") || !v.lacks("docker_image") ||
		slices.Contains([]string{"container", "docker"}, strings.ToLower(universe)))
}

func transferExecutable(v *view, value string, by *submitfile.Statement) {
	if v.shape.OfImage = ofImage(value); !v.shape.OfImage {
		v.say(by, Moot, "it is the default", "", "")
		return
	}
	v.say(by, Taken, "", "", "spec.script.source")
}

// ofImage reports whether this value of transfer_executable leaves the executable where it is: HTCondor looks at the
// first letter alone.
func ofImage(value string) bool { return strings.HasPrefix(strings.ToLower(value), "f") }

func isFalse(value string) bool {
	return slices.Contains([]string{"false", "no", "f", "0"}, strings.ToLower(value))
}

// imageRE matches what the API takes for an image, and registryRE what names its registry.
var (
	imageRE    = regexp.MustCompile(`^((docker|oras|library)://)?[A-Za-z0-9/][A-Za-z0-9/._:@%+=~-]*$`)
	registryRE = regexp.MustCompile(`^(docker|oras|library)://`)
)

func image(v *view, value string, by *submitfile.Statement) {
	switch {
	case v.c.options.Image != "":
		v.say(by, Taken, "the image of --image replaces it", "", "spec.script.image")
	case urlRE.MatchString(value) && !registryRE.MatchString(value):
		v.say(
			by,
			Asks,
			"htcd fetches images from registries only",
			"apptainer push FILE.sif oras://REGISTRY/NAME:TAG, or put it where the nodes see it, and name that in --image",
			"",
		)
	case !imageRE.MatchString(value), strings.HasSuffix(value, ".sif") && !strings.HasPrefix(value, "/"),
		v.c.here(value) && !strings.HasPrefix(value, "/"):
		v.say(by, Asks, "it is a file of this machine",
			"push it to a registry, or put it where the nodes see it, and name that in --image", "")
	default:
		v.shape.Spec.Script.Image = value
		v.say(by, Taken, "", "", "spec.script.image")
	}
}

var unitRE = regexp.MustCompile(`(?i)^([0-9]{1,12}(?:[.][0-9]{1,9})?)\s*([KMGT]?)I?B?$`)

// amount is a number of bytes, rounded up to that unit as HTCondor does; without a unit it is in that one.
func amount(value string, unit int64) (int64, bool) {
	m := unitRE.FindStringSubmatch(value)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	factor := map[string]int64{"": unit, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[strings.ToUpper(m[2])]
	bytes := f * float64(factor)
	if err != nil || bytes > 1<<50 {
		return 0, false
	}
	return (int64(bytes) + unit - 1) / unit * unit, true
}

func (v *view) resources() *v1alpha1.Resources {
	if v.shape.Spec.Resources == nil {
		v.shape.Spec.Resources = &v1alpha1.Resources{}
	}
	return v.shape.Spec.Resources
}

func requestMemory(v *view, value string, by *submitfile.Statement) {
	if n, is := amount(value, 1<<20); is && n > 0 {
		v.resources().Memory = resource.NewQuantity(n, resource.BinarySI)
		v.say(by, Taken, "", "", "spec.resources.memory")
		return
	}
	v.option("request_memory", value, by)
}

func requestDisk(v *view, value string, by *submitfile.Statement) {
	n, is := amount(value, 1<<10)
	switch {
	case is && n >= 1<<20:
		v.resources().Disk = resource.NewQuantity(n, resource.BinarySI)
		v.say(by, Taken, "", "", "spec.resources.disk")
		return
	case is: // less than the field takes
		value = strconv.FormatInt(n>>10, 10)
	}
	v.option("request_disk", value, by)
}

func requestCPUs(v *view, value string, by *submitfile.Statement) {
	if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= 1_000_000 {
		v.resources().CPUs = resource.NewQuantity(int64(n), resource.DecimalSI)
		v.say(by, Taken, "", "", "spec.resources.cpus")
		return
	}
	v.option("request_cpus", value, by)
}

func requestGPUs(v *view, value string, by *submitfile.Statement) {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		v.option("request_gpus", value, by)
	case n == 0:
		v.say(by, Moot, "a job has no GPU unless it asks for one", "", "")
	case n < 0:
		v.option("request_gpus", value, by)
	default:
		v.resources().GPUs = resource.NewQuantity(int64(n), resource.DecimalSI)
		v.say(by, Taken, "", "", "spec.resources.gpus")
	}
}

func requirements(v *view, value string, by *submitfile.Statement) {
	if strings.Contains(value, "$$") {
		v.option("requirements", value, by)
		return
	}
	if !v.calls(value, by) || !v.takes("requirements = "+strings.ReplaceAll(value, "\n", " "), by) {
		return
	}
	v.shape.Spec.Requirements = value
	v.say(by, Taken, "", "", "spec.requirements")
}

func priority(v *view, value string, by *submitfile.Statement) {
	if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= -1_000_000 && n <= 1_000_000 {
		v.shape.Spec.Priority = new(int32(n))
		v.say(by, Taken, "", "", "spec.priority")
		return
	}
	v.option("priority", value, by)
}

// flavours are CERN's names of run times, in seconds.
var flavours = map[string]int64{
	"espresso": 20 * 60, "microcentury": 3600, "longlunch": 2 * 3600, "workday": 8 * 3600, "tomorrow": 24 * 3600,
	"testmatch": 3 * 24 * 3600, "nextweek": 7 * 24 * 3600,
}

// runTimeOf bounds the run time by CERN's attributes for it, whatever the site does about them. MaxRuntime counts
// before JobFlavour.
func (v *view) runTimeOf(attribute, value string) {
	seconds, isFlavour := flavours[strings.Trim(value, `"`)]
	if n, err := strconv.ParseInt(value, 10, 64); attribute == "maxruntime" && err == nil {
		seconds, isFlavour = n, false
	}
	if seconds < 1 || seconds > maxRunTime ||
		isFlavour && (attribute != "jobflavour" || v.shape.Spec.RunDeadlineSeconds != nil) {
		return
	}
	v.shape.Spec.RunDeadlineSeconds = &seconds
}

// maxRunTime is that of the API, in seconds.
const maxRunTime = 315_360_000

func runTime(v *view, value string, by *submitfile.Statement) {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 && n <= maxRunTime {
		v.shape.Spec.RunDeadlineSeconds = &n
		v.say(by, Taken, "a job that runs longer has failed, and is not put on hold", "", "spec.runDeadlineSeconds")
		return
	}
	v.option("allowed_execute_duration", value, by)
}

func retries(v *view, value string, by *submitfile.Statement) {
	if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 0 && n <= 1000 {
		v.shape.Spec.Retries = new(int32(n))
		v.say(by, Taken, "", "", "spec.retries")
		return
	}
	v.option("max_retries", value, by)
}

// defaultRetries is max_retries of a job that has success_exit_code or retry_until alone.
const defaultRetries = 2

func (v *view) lacks(command string) bool {
	_, by := v.value(command)
	return by == nil
}

func successCode(v *view, value string, by *submitfile.Statement) {
	if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 0 && n <= 255 {
		v.shape.Spec.SuccessExitCodes = []int32{int32(n)}
		words := ""
		if v.lacks("max_retries") && v.lacks("retry_until") {
			v.shape.Spec.Retries = new(int32(defaultRetries))
			words = fmt.Sprintf("HTCondor then tries %d times more by itself: spec.retries", defaultRetries)
		}
		v.say(by, Taken, words, "", "spec.successExitCodes")
		return
	}
	v.option("success_exit_code", value, by)
}

// maxParallelism is that of the API.
const maxParallelism = 1_000_000

func maxMaterialize(v *view, value string, by *submitfile.Statement) { v.parallelism("", value, by) }

// maxIdle gives way to max_materialize, which bounds the jobs that run as well.
func maxIdle(v *view, value string, by *submitfile.Statement) {
	if most, _ := v.value("max_materialize"); most != "" {
		v.say(by, Moot, "max_materialize says how many are in the queue at a time", "", "")
		return
	}
	v.parallelism("the jobs that run count, too", value, by)
}

func (v *view) parallelism(words, value string, by *submitfile.Statement) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		v.say(by, Cannot, fmt.Sprintf("%q is no number of jobs", value), "a number from 1 on", "")
		return
	}
	v.shape.Spec.Parallelism = new(int32(min(n, maxParallelism))) // #nosec G115 -- as bounded
	v.say(by, Taken, words, "", "spec.parallelism")
}

var groupRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_@-]*([.][A-Za-z0-9_@-]+)*$`)

func accountingGroup(v *view, value string, by *submitfile.Statement) {
	if !groupRE.MatchString(value) {
		v.say(by, Cannot, fmt.Sprintf("%q cannot be the name of a group", value),
			"words of letters, digits and _ @ - with one dot between", "")
		return
	}
	v.shape.Spec.AccountingGroup = value
	v.say(by, Taken, "", "", "spec.accountingGroup")
}

func batchName(v *view, value string, by *submitfile.Statement) {
	value = strings.Trim(value, `"`)
	if strings.ContainsAny(value, "\"$\\\n\t") || len(value) > 253 || value == "" {
		v.say(by, Cannot, "the name must be one line without double quotes, dollar signs and backslashes",
			"letters, digits, spaces and . _ -", "")
		return
	}
	v.shape.Spec.Name = value
	v.say(by, Taken, "", "", "spec.name")
}

func hold(v *view, value string, by *submitfile.Statement) {
	switch v.shape.Spec.Suspend = slices.Contains([]string{"true", "1"}, strings.ToLower(value)); {
	case v.shape.Spec.Suspend:
		v.say(by, Taken, "the jobs are sent once it is false", "", "spec.suspend")
	case isFalse(value):
		v.say(by, Moot, "it is the default", "", "")
	default:
		v.refuse(by, value+" is neither true nor false", "one of these")
	}
}

// credential names a key of a Secret.
func (v *view) credential(as v1alpha1.CredentialKind, flag, secret, key string, by *submitfile.Statement) {
	if secret == "" {
		v.say(
			by,
			Asks,
			"credentials come from a Secret",
			"htcd sync-secret --name NAME FILE keeps one up to date; then "+flag+" NAME, and the label htc.cern.ch/jobs=true at it",
			"",
		)
		return
	}
	if name, k, both := strings.Cut(secret, "/"); both {
		secret, key = name, k
	}
	c := v1alpha1.Credential{Name: key, SecretKeyRef: v1alpha1.KeyRef{Name: secret, Key: key}, As: as}
	if !slices.Contains(v.shape.Spec.Credentials, c) {
		v.shape.Spec.Credentials = append(v.shape.Spec.Credentials, c)
	}
	v.say(by, Taken, "the Secret of "+flag, "", "spec.credentials")
}

func proxy(v *view, value string, by *submitfile.Statement) {
	if isFalse(value) {
		v.say(by, Moot, "it is the default", "", "")
		return
	}
	v.credential(v1alpha1.X509Proxy, "--proxy", v.c.options.Proxy, "x509up", by)
}

func token(v *view, value string, by *submitfile.Statement) {
	if isFalse(value) {
		v.say(by, Moot, "it is the default", "", "")
		return
	}
	v.credential(v1alpha1.BearerToken, "--token", v.c.options.Token, "token", by)
}

func quotedReason(v *view, value string, by *submitfile.Statement) {
	x, err := classad.ParseExpr(value)
	if l, is := x.(*classad.Literal); err == nil && is && l.Value.Kind() == classad.String {
		pass(v, value, by)
		return
	}
	v.say(by, Cannot, "the reason of a hold is a text in double quotes", "such a text", "")
}

func shouldTransfer(v *view, value string, by *submitfile.Statement) {
	if isFalse(value) || strings.EqualFold(value, "never") {
		v.say(by, Cannot, "jobs do not see this machine's files",
			"transfer_input_files, or absolute paths of a file system that the nodes have", "")
		return
	}
	v.say(by, Moot, "htcd always transfers files", "", "")
}

func whenToTransfer(v *view, value string, by *submitfile.Statement) {
	switch strings.ToLower(value) {
	case "on_exit":
		v.say(by, Moot, "htcd does so", "", "")
	case "on_success":
		v.say(by, Moot, "what a failed job leaves is brought back, too", "", "")
	case "on_exit_or_evict":
		onEviction(v, by)
	default:
		v.say(by, Cannot, "condor_submit does not know it", "ON_EXIT, ON_SUCCESS or ON_EXIT_OR_EVICT", "")
	}
}

func notification(v *view, value string, by *submitfile.Statement) {
	if strings.EqualFold(value, "never") {
		v.say(by, Moot, "it is the default", "", "")
		return
	}
	v.option("notification", strings.ToLower(value), by)
}

// notifyUser counts if mail is sent at all, which is not the default.
func notifyUser(v *view, _ string, by *submitfile.Statement) {
	if when, _ := v.value("notification"); when == "" || strings.EqualFold(when, "never") {
		v.say(by, Moot, "no mail is sent unless notification asks for it", "", "")
		return
	}
	v.say(by, Cannot, "mail goes to the owner of the pool's account",
		"htcd submit --watch, in a script that sends the mail", "")
}

func transferStream(v *view, value string, by *submitfile.Statement) {
	if isFalse(value) {
		v.say(by, Moot, "what a job prints always comes back", "", "")
		return
	}
	v.say(by, Moot, "htcd does so", "", "")
}

// pullPolicy: HTCondor knows one other than its default.
func pullPolicy(v *view, value string, by *submitfile.Statement) {
	if strings.EqualFold(strings.Trim(value, `"`), "always") {
		v.say(by, Cannot, "a machine fetches an image that it lacks, and no other",
			"a tag or a digest of its own for each version of the image", "")
		return
	}
	v.say(by, Moot, "a machine fetches an image that it lacks", "", "")
}

func shellCommand(v *view, value string, by *submitfile.Statement) {
	v.shape.Shell = value
	v.say(by, Taken, "", "", "spec.script.source")
}
