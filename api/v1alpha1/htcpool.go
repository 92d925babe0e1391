package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HTCPool is what a site decides about the HTCJobs that are sent by way of it: where they go and as whom, who may use
// it, what they get when they do not say, how many there may be at once, and how long they are kept.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=htcpools,singular=htcpool,shortName=htcp,scope=Cluster
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.spec.state`,description="Online, Draining (nothing new is sent) or Suspended (what waits in HTCondor is held, too)."
// +kubebuilder:printcolumn:name=Idle,type=integer,JSONPath=`.status.idle`,description="How many jobs wait in HTCondor for a slot."
// +kubebuilder:printcolumn:name=Running,type=integer,JSONPath=`.status.running`,description="How many run."
// +kubebuilder:printcolumn:name=Held,type=integer,JSONPath=`.status.held`,description="How many are on hold."
// +kubebuilder:printcolumn:name=Open,type=integer,JSONPath=`.status.open`,description="How many have not ended."
// +kubebuilder:printcolumn:name=Max,type=integer,JSONPath=`.spec.limits.maxOpen`,description="How many may be open at once."
// +kubebuilder:printcolumn:name=Waiting,type=integer,JSONPath=`.status.waiting`,description="How many HTCJobs wait to be sent."
// +kubebuilder:printcolumn:name=Accepting,type=string,JSONPath=`.status.conditions[?(@.type=="Accepting")].reason`,description="Accepting, or why nothing is sent at present."
// +kubebuilder:printcolumn:name=Default,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Default")].status`,description="Whether HTCJobs that name no pool use this one."
// +kubebuilder:printcolumn:name=Reachable,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`,description="Whether its schedds answer."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="How long ago the object was created."
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must be at most 63 characters"
type HTCPool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the site has decided. An edit concerns the attempts that begin afterwards; only state, limits and
	// keep concern HTCJobs that have been sent.
	// +required
	Spec HTCPoolSpec `json:"spec"`

	// Status says how full the pool is and whether it accepts HTCJobs.
	// +optional
	Status HTCPoolStatus `json:"status,omitempty"`
}

// HTCPoolList is what a list request answers.
//
// +kubebuilder:object:root=true
type HTCPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HTCPool `json:"items"`
}

// HTCPoolSpec says what the site has decided.
//
// +kubebuilder:validation:XValidation:rule="!has(self.schedd) || !has(self.schedds)",fieldPath=".schedds",message="schedd and schedds both say where attempts go: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.collector) || has(self.schedd) || has(self.schedds)",fieldPath=".collector",message="collector names another central manager: write in schedd or schedds which of its schedds are meant"
type HTCPoolSpec struct {
	// Default makes this the pool of HTCJobs that name none. If several pools say so, the oldest is used, and the
	// condition Default of the others is False.
	// +optional
	Default bool `json:"default,omitempty"`

	// Schedd is the name of the schedd; the usual one when absent.
	// +optional
	Schedd ScheddName `json:"schedd,omitempty"`

	// Schedds names several schedds. A new attempt goes to the one that answers and has the fewest open jobs of htcd,
	// unless the HTCJob names one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Schedds []ScheddName `json:"schedds,omitempty"`

	// Collector is the central manager of the schedds, host or host:port; htcd's own when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$')",message="the collector must be host or host:port"
	Collector string `json:"collector,omitempty"`

	// NamespaceSelector says by labels which namespaces may use the pool; all when absent.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// Account says as whom jobs are sent.
	// +optional
	Account *PoolAccount `json:"account,omitempty"`

	// State is Online; Draining: nothing new is sent; or Suspended: nothing new is sent, and jobs that
	// wait in HTCondor for a slot are put on hold until the pool is Online or Draining again. Jobs that run go on.
	// +optional
	// +kubebuilder:default=Online
	State PoolState `json:"state,omitempty"`

	// Attributes are patterns of +Attributes that htcopts of the pool's HTCJobs may hold, such as Lab*, or * for all,
	// besides those of htcd's own --attributes. They allow none of those that HTCondor or htcd act upon.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Attributes []string `json:"attributes,omitempty"`

	// Images are patterns of images that HTCJobs may use, in addition to the restrictions of htcd's own --allow-images;
	// all when absent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Images []string `json:"images,omitempty"`

	// Defaults are what an HTCJob gets when it does not say.
	// +optional
	Defaults *PoolDefaults `json:"defaults,omitempty"`

	// Adjust changes what is asked for, whether an HTCJob or the defaults ask.
	// +optional
	Adjust *PoolAdjust `json:"adjust,omitempty"`

	// Max is the most that one job may ask for, before adjust. What asks for more is refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.cpus) || isQuantity(string(self.cpus)) && quantity(string(self.cpus)).isGreaterThan(quantity('0')) && quantity(string(self.cpus)).compareTo(quantity('1M')) <= 0",fieldPath=".cpus",message="the cpus must be more than 0 and at most 1M, written as 4, or as 500m, which is rounded up to 1"
	// +kubebuilder:validation:XValidation:rule="!has(self.memory) || isQuantity(string(self.memory)) && quantity(string(self.memory)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.memory)).compareTo(quantity('1Pi')) <= 0",fieldPath=".memory",message="the memory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.disk) || isQuantity(string(self.disk)) && quantity(string(self.disk)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.disk)).compareTo(quantity('1Pi')) <= 0",fieldPath=".disk",message="the disk must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.gpus) || isQuantity(string(self.gpus)) && quantity(string(self.gpus)).isInteger() && quantity(string(self.gpus)).compareTo(quantity('0')) >= 0 && quantity(string(self.gpus)).compareTo(quantity('1M')) <= 0",fieldPath=".gpus",message="the gpus must be a whole number, at least 0 and at most 1M"
	Max *PoolMax `json:"max,omitempty"`

	// Limits bound how much of the pool is used at once.
	// +optional
	Limits *PoolLimits `json:"limits,omitempty"`

	// Placement is Pack, which prefers machines that are used already so that whole ones stay free; Spread, which
	// prefers empty ones; or Any, when absent.
	// +optional
	Placement PoolPlacement `json:"placement,omitempty"`

	// Keep says how long ended HTCJobs are kept.
	// +optional
	Keep *PoolKeep `json:"keep,omitempty"`
}

// ScheddName is the name of a schedd.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_]([A-Za-z0-9_.@-]*[A-Za-z0-9])?$')",message="the schedd must be a name such as bigbird10.cern.ch or name@host"
type ScheddName string

// PoolAccount says as whom jobs are sent.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secretName) || !has(self.from) || self.from == 'Namespace'",fieldPath=".secretName",message="secretName names a Secret of the HTCJob's namespace: leave it out with from: Common"
type PoolAccount struct {
	// SecretName names the Secret of the HTCJob's namespace that holds the account; the usual one when absent.
	// It must be one of those that htcd may read (--namespace-secrets, --pool-secrets).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="the Secret's name must be a Kubernetes name"
	SecretName string `json:"secretName,omitempty"`

	// From is Namespace: the account of the HTCJob's namespace, as htcd's flags say when absent; or Common: always
	// htcd's own.
	// +optional
	From PoolAccountSource `json:"from,omitempty"`
}

// PoolAccountSource says where an account comes from.
//
// +kubebuilder:validation:Enum=Namespace;Common
type PoolAccountSource string

// The sources of accounts.
const (
	AccountFromNamespace PoolAccountSource = "Namespace"
	AccountCommon        PoolAccountSource = "Common"
)

// PoolState says whether a pool works.
//
// +kubebuilder:validation:Enum=Online;Draining;Suspended
type PoolState string

// The states of a pool.
const (
	PoolOnline    PoolState = "Online"
	PoolDraining  PoolState = "Draining"
	PoolSuspended PoolState = "Suspended"
)

// PoolPlacement says which machines are preferred.
//
// +kubebuilder:validation:Enum=Pack;Spread;Any
type PoolPlacement string

// The placements.
const (
	PlacementPack   PoolPlacement = "Pack"
	PlacementSpread PoolPlacement = "Spread"
	PlacementAny    PoolPlacement = "Any"
)

// PoolDefaults are what an HTCJob gets when it does not say. A line of its htcopts that sets the same counts as said.
type PoolDefaults struct {
	// Resources is what each job asks for.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.cpus) || isQuantity(string(self.cpus)) && quantity(string(self.cpus)).isGreaterThan(quantity('0')) && quantity(string(self.cpus)).compareTo(quantity('1M')) <= 0",fieldPath=".cpus",message="the cpus must be more than 0 and at most 1M, written as 4, or as 500m, which is rounded up to 1"
	// +kubebuilder:validation:XValidation:rule="!has(self.memory) || isQuantity(string(self.memory)) && quantity(string(self.memory)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.memory)).compareTo(quantity('1Pi')) <= 0",fieldPath=".memory",message="the memory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.disk) || isQuantity(string(self.disk)) && quantity(string(self.disk)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.disk)).compareTo(quantity('1Pi')) <= 0",fieldPath=".disk",message="the disk must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.gpus) || isQuantity(string(self.gpus)) && quantity(string(self.gpus)).isInteger() && quantity(string(self.gpus)).compareTo(quantity('0')) >= 0 && quantity(string(self.gpus)).compareTo(quantity('1M')) <= 0",fieldPath=".gpus",message="the gpus must be a whole number, at least 0 and at most 1M"
	Resources *Resources `json:"resources,omitempty"`

	// HTCOpts holds further submit commands, one per line, from the same list that users' htcopts may use.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 65536",message="htcopts must be at most 64 KiB of UTF-8"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x08\\\\x0b-\\\\x1f\\\\x7f]')",message="htcopts must not hold control characters other than tab and newline: save it with plain (Unix) line ends"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)(?:^|\\\\n)[ \\\\t]*queue(?:[ \\\\t\\\\n(]|$)')",message="htcopts must not hold a queue statement"
	HTCOpts string `json:"htcopts,omitempty"`

	// Image is that of scripts which name none, as script.image has it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9/][A-Za-z0-9/._:@%+=~-]*$')",message="the image must be a docker reference such as centos or python:3.13, one that begins with docker://, oras:// or library://, or an absolute path such as /cvmfs/unpacked.cern.ch/NAME; spaces, quotes and control characters have no place in it"
	// +kubebuilder:validation:XValidation:rule="!self.contains('://') || self.matches('^(?:docker|oras|library)://[A-Za-z0-9]')",message="the image's scheme must be docker://, oras:// or library://, with a name after it; leave the scheme out for an ordinary docker image"
	Image string `json:"image,omitempty"`

	// Credentials are files from Secrets of the HTCJob's namespace, as credentials of an HTCJob has them. One is left
	// out where the HTCJob has a credential of the same name, another X509Proxy or BearerToken, or sets the variable
	// itself.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.filter(c, c.as == 'X509Proxy').size() <= 1 && self.filter(c, c.as == 'BearerToken').size() <= 1",message="at most one credential can be the X509Proxy and one the BearerToken: use File for the others"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, c.as == 'Registry')",message="a login for a registry cannot be a default: name it in the credentials of the HTCJob"
	Credentials []Credential `json:"credentials,omitempty"`

	// Environment holds variables of the scripts; an HTCJob's own variable of the same name overrides one.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(HTCPROCID|HOME|UID|EUID|GID|PROMPT_COMMAND|PREPEND_PATH|APPEND_PATH|(_CONDOR_|APPTAINER|SINGULARITY).*)$'))",message="HTCPROCID, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].matches('[\\\\x00-\\\\x1f\\\\x7f]'))",message="a variable's value must be one line without control characters"
	Environment map[string]EnvironmentValue `json:"environment,omitempty"`

	// AccountingGroup is the group that the use of the pool is counted for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_@-]*([.][A-Za-z0-9_@-]+)*$')",message="the accounting group must be words of letters, digits and _ @ - with one dot between, such as group_u_CMS.u_zh"
	AccountingGroup string `json:"accountingGroup,omitempty"`

	// Retries is how often HTCondor runs a job again that failed by its return code.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Retries *int32 `json:"retries,omitempty"`

	// MemoryRetry lets a job that was put on hold for too little memory run again with more. It concerns jobs that ask
	// for less than maxMemory, as a number.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self.maxMemory)) && quantity(string(self.maxMemory)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.maxMemory)).compareTo(quantity('1Pi')) <= 0",fieldPath=".maxMemory",message="maxMemory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	MemoryRetry *MemoryRetry `json:"memoryRetry,omitempty"`

	// ActiveDeadlineSeconds is how long an attempt may take from its submission to its end.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	Deadlines `json:",inline"`
}

// PoolMax is the most that one job may ask for, whether a field or a line of its htcopts asks. A line must have a
// number, whose size is known.
type PoolMax struct {
	Resources `json:",inline"`

	// RunDeadlineSeconds is the longest that one may run, and how long one may that has no runDeadlineSeconds and no
	// default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	RunDeadlineSeconds *int64 `json:"runDeadlineSeconds,omitempty"`
}

// PoolAdjust changes what is asked for: percent first, then the extra. Results are rounded up to whole cores, MiB and
// KiB.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memoryExtra) || isQuantity(string(self.memoryExtra)) && (quantity(string(self.memoryExtra)).compareTo(quantity('0')) == 0 || quantity(string(self.memoryExtra)).compareTo(quantity('1Mi')) >= 0) && quantity(string(self.memoryExtra)).compareTo(quantity('1Ti')) <= 0",fieldPath=".memoryExtra",message="the extra memory must be 0, or 1Mi to 1Ti, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
type PoolAdjust struct {
	// CPUsPercent of the cores asked for are requested, 100 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	CPUsPercent *int32 `json:"cpusPercent,omitempty"`

	// MemoryPercent of the memory asked for is requested, 100 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MemoryPercent *int32 `json:"memoryPercent,omitempty"`

	// MemoryExtra is added to it.
	// +optional
	MemoryExtra *resource.Quantity `json:"memoryExtra,omitempty"`

	// DiskPercent of the disk asked for is requested, 100 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	DiskPercent *int32 `json:"diskPercent,omitempty"`
}

// PoolLimits bound how much of a pool is used at once. What is sent already stays, also when a limit is lowered.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memory) || isQuantity(string(self.memory)) && quantity(string(self.memory)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.memory)).compareTo(quantity('1Ei')) <= 0",fieldPath=".memory",message="the memory must be 1Mi to 1Ei, written as 500Gi, 4T or 4Ti, and not as 4TB; a number without a unit is in bytes"
// +kubebuilder:validation:XValidation:rule="!has(self.maxIdle) || !has(self.idlePercentOfRunning)",fieldPath=".idlePercentOfRunning",message="maxIdle and idlePercentOfRunning both bound the idle jobs: keep one of them"
type PoolLimits struct {
	// MaxQueue is the most jobs that one HTCJob may have, and the most nodes of one HTCWorkflow.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxQueue *int32 `json:"maxQueue,omitempty"`

	// MaxOpen is the most jobs that may be in HTCondor without having ended. An HTCJob is sent only if it fits whole.
	// Of another namespace's jobs that wait for a slot or are on hold only its share counts, maxOpen divided by the
	// namespaces with open jobs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxOpen *int32 `json:"maxOpen,omitempty"`

	// MaxOpenPerNamespace is the same for each namespace.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxOpenPerNamespace *int32 `json:"maxOpenPerNamespace,omitempty"`

	// MaxIdle is the most jobs that may wait in HTCondor for a slot. An HTCJob is sent only if it fits whole. Of
	// another namespace's jobs only its share counts, maxIdle divided by the namespaces with open jobs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxIdle *int32 `json:"maxIdle,omitempty"`

	// IdlePercentOfRunning makes the limit of idle jobs follow how many run in the pool.
	// +optional
	IdlePercentOfRunning *IdlePercent `json:"idlePercentOfRunning,omitempty"`

	// NewPerMinute is the most jobs that are sent within 60 seconds. An HTCJob is sent only if it fits whole. Each DAG
	// of an HTCWorkflow sends at most that many nodes in a minute.
	// +optional
	// +kubebuilder:validation:Minimum=1
	NewPerMinute *int32 `json:"newPerMinute,omitempty"`

	// Cores is the most cores that jobs that wait for a slot or run may ask for together, of all namespaces. An HTCJob
	// is sent only if it fits whole, and each job must say how many it asks for, itself or by the pool's defaults. Of
	// what waits of another namespace only its share counts.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Cores *int32 `json:"cores,omitempty"`

	// Memory is the same for the memory that they ask for.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// MaxHeld holds back further HTCJobs while more jobs than that are on hold, other than by the state Suspended:
	// something is wrong then. It holds back namespaces that have more than their share of it on hold.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxHeld *int32 `json:"maxHeld,omitempty"`
}

// IdlePercent is a limit of idle jobs that follows how many run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min must be at most max"
type IdlePercent struct {
	// Percent of the running jobs may be idle.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Percent int32 `json:"percent"`

	// Min is the least that the limit becomes, however few run; 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Min *int32 `json:"min,omitempty"`

	// Max is the most that the limit becomes; no bound when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Max *int32 `json:"max,omitempty"`
}

// PoolKeep says how long HTCJobs without ttlSecondsAfterFinished are kept after their end, by how they ended, and how
// long any may be kept.
type PoolKeep struct {
	// Succeeded is how long those are kept that succeeded, such as 1h or 30m.
	// +optional
	Succeeded *PoolDuration `json:"succeeded,omitempty"`

	// Failed is how long those are kept that failed or were refused.
	// +optional
	Failed *PoolDuration `json:"failed,omitempty"`

	// Removed is how long those are kept whose jobs were removed in HTCondor.
	// +optional
	Removed *PoolDuration `json:"removed,omitempty"`

	// Most bounds how long any HTCJob is kept after its end, also what ttlSecondsAfterFinished asks for.
	// +optional
	Most *PoolDuration `json:"most,omitempty"`
}

// PoolDuration is a time such as 90s, 30m, 1h or 1h30m.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$`
type PoolDuration string

// HTCPoolStatus says how full a pool is and whether it accepts HTCJobs.
type HTCPoolStatus struct {
	// Idle counts the jobs that wait in HTCondor for a slot.
	// +optional
	Idle int32 `json:"idle"`

	// Running counts those that run.
	// +optional
	Running int32 `json:"running"`

	// Held counts those on hold, also by the state Suspended.
	// +optional
	Held int32 `json:"held"`

	// Open counts those that have not ended, with those on their way to the schedd.
	// +optional
	Open int32 `json:"open"`

	// Waiting counts the HTCJobs that wait to be sent.
	// +optional
	Waiting int32 `json:"waiting"`

	// Namespaces lists the first 20 namespaces by their open jobs.
	// +optional
	// +listType=map
	// +listMapKey=name
	Namespaces []PoolNamespace `json:"namespaces,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Reachable, Accepting and Default.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PoolNamespace says how much of a pool one namespace uses.
type PoolNamespace struct {
	// Name is the namespace.
	// +required
	Name string `json:"name"`

	// Open counts its jobs that have not ended.
	// +optional
	Open int32 `json:"open"`

	// Waiting counts its HTCJobs that wait to be sent.
	// +optional
	Waiting int32 `json:"waiting"`
}

// The types of an HTCPool's conditions.
const (
	PoolReachable = "Reachable" // one of its schedds, at least, answered when last asked
	PoolAccepting = "Accepting" // HTCJobs are sent; otherwise the reason says what holds them back
	PoolDefault   = "Default"   // HTCJobs that name no pool use this one; absent if spec.default is false
	PoolSlowed    = "Slowed"    // a schedd of it is busy, and so asked less; absent if none is
)

// MaxPoolNamespaces is how many namespaces an HTCPool's status lists.
const MaxPoolNamespaces = 20
