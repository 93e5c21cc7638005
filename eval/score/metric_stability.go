package score

// It is measured over three reads of one probe: see walk.again.
var _ = register(metric{
	Entry: Entry{Name: "stability", Group: "stability", Unit: "share", Better: "more",
		What: "Jaccard index of the items of three reads, the mean of the three pairs"},
	applies: everyProbe, absent: "not measured: no probe was read three times",
})
