package submit

import "strings"

// chargedToOwner has the jobs of a cluster that are of a group charged to the account that owns them: GROUP.ACCOUNT.
// condor_submit writes the account that it runs as, which is the owner on the schedd's host, where factories and nodes
// of DAGs are sent, and not beside htcd. What users write themselves stays.
func chargedToOwner(options []option) []option {
	grouped := false
	for _, o := range options {
		switch strings.ToLower(o.key) {
		case "accounting_group":
			grouped = true
		case "nice_user": // the group nice-user
			grouped = grouped || o.value == "true"
		case "accounting_group_user", "acctgroupuser", "my.acctgroupuser", "my.accountinggroup":
			return options
		}
	}
	if !grouped {
		return options
	}
	return append(options, option{"My.AcctGroupUser", "Owner"},
		option{"My.AccountingGroup", `strcat(AcctGroup, ".", Owner)`})
}
