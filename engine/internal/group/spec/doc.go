// Package spec holds group.pml, a Promela model of how a partition of an assigned group is handed over, with faults planted
// in it. Its test lets Spin look at all states of the model, and for each fault.
//
// The model is the reason to believe what group.Word asks of the engine: why a lane says that it is about to deliver before
// it looks, why a committed position has a seal, and in which order a fence does what. Who changes the coordinator or the
// lanes changes it too.
package spec
