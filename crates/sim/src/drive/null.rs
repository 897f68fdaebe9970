//! A machine without bytes and without time: every action is done at once. It is there to see what the engine
//! itself costs, and takes no memory after its start.
