"""Methods of second order: quadratic model, step, acceptance."""
