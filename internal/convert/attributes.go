package convert

// What htcopts takes everywhere. Tests compare it with the schedd package, which does not run where the users' commands
// do.
var (
	// Attributes may be set with +NAME.
	Attributes = []string{
		"JobFlavour", "MaxRuntime", "AccountingGroup", "SendCredential", "WantOS", "BigMemJob", "ProjectName",
		"DESIRED_Sites",
		"DESIRED_CMS_Sites", "UNDESIRED_Sites", "REQUIRED_OS", "WantScienceGatewayJob", "Experiment", "JobDescription",
		"WantGPULab", "GPUJobLength", "is_resumable", "JobDurationCategory", "RequestRuntime", "MaxRuntimeHours",
		"ContainerOS",
	}
	// Functions may be called in expressions.
	Functions = []string{
		"ifThenElse", "isUndefined", "isError", "isString", "isInteger", "isReal", "isBoolean", "isList",
		"int", "real", "bool", "floor", "ceiling", "round", "quantize", "pow", "min", "max", "sum", "avg", "random", "time",
		"size", "member", "identicalMember", "anyCompare", "allCompare",
		"strcmp", "stricmp", "substr", "toLower", "toUpper", "regexp", "regexpMember",
		"stringListMember", "stringListIMember", "stringListSubsetMatch", "stringListISubsetMatch", "stringListsIntersect",
		"stringList_regexpMember", "stringListSize", "stringListSum", "stringListAvg", "stringListMin", "stringListMax",
		"versioncmp", "versionGT", "versionGE", "versionLT", "versionLE", "versionEQ", "version_in_range",
	}
)
