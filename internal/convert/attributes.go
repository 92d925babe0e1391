package convert

// Attributes may be set with +NAME everywhere; a test compares them with those of the schedd package, which the users' commands cannot have.
var Attributes = []string{
	"JobFlavour", "MaxRuntime", "AccountingGroup", "SendCredential", "WantOS", "BigMemJob", "ProjectName", "DESIRED_Sites", "DESIRED_CMS_Sites",
	"UNDESIRED_Sites", "REQUIRED_OS", "WantScienceGatewayJob", "Experiment", "JobDescription",
}
