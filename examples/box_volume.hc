# The largest box within limits on walls, floor and proportions (a maximisation).
# Optimum 77.4597 = sqrt(6000).
param walls > 0 = 100, floor > 0 = 10
var height in [0.1, 100], width in [0.1, 100], depth in [0.1, 100]

maximize height * width * depth

subject to
    wall_area: 2*height*width + 2*height*depth <= walls
    floor_area: width * depth <= floor
    slender: 0.5 <= height / width <= 2
    square: 0.5 <= depth / width <= 2

hidden log([height, width, depth])
