// Package submitfile reads submit description files as condor_submit does, versions 23 and 25: macros and their
// functions, conditionals, included files, and queue statements in all their forms. It knows no command of a job beside
// those that decide how many jobs there are: what request_memory means is the caller's business.
//
// Parse splits a file into statements; Expand walks through them as condor_submit does and returns the jobs of each
// queue statement. Macros are replaced when a job's command is asked for: what is defined last before a queue statement
// counts, also for lines above. Nothing outside is touched except through Env, and no program is started unless the
// caller allows it.
//
// Where the manual is silent or says otherwise, the package follows what condor_submit 23.9 was seen to do:
//
//   - A comment in a continued line ends the statement unless it ends in a backslash itself. A comment of its own is
//     never continued.
//   - In a table in the file itself, an empty line is a row, and lines that begin with # are none; in a table of its
//     own file they are rows.
//   - A row with fewer columns than variables keeps, for the others, the values of the row before.
//   - There may be several queue statements. After one its variables have the value <Queue_item>.
//   - A job for which a command has no value keeps that of the first job of its cluster.
//   - A queue statement in a conditional ends the conditional.
//   - A changed executable begins a new cluster; the numbers of the jobs begin at 0 again.
package submitfile
