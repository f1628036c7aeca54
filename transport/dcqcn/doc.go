// Package dcqcn owns the congestion control of one queue pair: the
// notification point ([NP]) that answers CE marks and the reaction point ([RP])
// that turns notifications into a sending rate, with every knob of the paper
// and of mlxconfig ([Params]) and the named sets of them ([Preset]).
package dcqcn
