// Package stream makes the three streams of numbers that a load consists of: when each message should be sent ([Arrival]), how
// large it is ([Sizes]), and which key it has ([Keys]).
//
// Each comes from a line of text, as a flag has it, and is then immutable; String gives the text back, so that a scenario can be
// printed and repeated:
//
//	a, err := stream.ParseArrival("burst:10ms/90ms")
//	times := a.Times(stream.Part{Seed: 1, Producer: 0, Of: 3}, 1e6) // the first of three producers, a million a second together
//	for {
//		at := times.Next() // nanoseconds since the start
//		...
//	}
//
// A stream belongs to one goroutine. Same text, same [Part], same stream, on the same kind of processor; the streams of
// different producers, and the three of one producer, know nothing of each other. Next takes constant time and allocates nothing.
package stream
